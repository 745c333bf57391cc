// Finds columns of a struct by their names, and selects those of a stream.
#pragma once

#include <cstdint>
#include <string>

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises TypeError unless `type`, of a stream, is a struct.
void require_columns(const Type& type);

/// The index of the field `name` of a struct. Raises ValueError if no field or several fields have
/// that name.
int64_t find_column(const Type& type, const std::string& name);

ARROWDL_END_NAMESPACE
