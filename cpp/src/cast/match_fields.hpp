// Matches the fields of two structs.
#pragma once

#include <cstddef>
#include <vector>

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// For each field of `to` the index of the field of `from`: by name if all names match, by position
/// if no field has the name of one at another position. Empty if only some match. Both structs
/// have as many fields.
std::vector<std::size_t> match_fields(const Type& from, const Type& to);

ARROWDL_END_NAMESPACE
