// Replaces validity bitmaps.
#pragma once

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises BufferError for a type without a validity bitmap.
void require_validity(const Type& type);

ARROWDL_END_NAMESPACE
