// Moves bitmaps to the bit offset of an array.
#pragma once

#include <cstdint>

#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The `count` bits of `bits`, in host memory, moved up by `shift` bits, 0 to 7.
Buffer shift_bits(const Buffer& bits, int64_t shift, int64_t count);

/// Raises BufferError for a type without a validity bitmap.
void require_validity(const Type& type);

ARROWDL_END_NAMESPACE
