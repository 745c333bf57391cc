// The values that replace nulls.
#pragma once

#include <array>
#include <cstdint>

#include "arrowdl/dtype.hpp"
#include "arrowdl/nulls.hpp"

ARROWDL_BEGIN_NAMESPACE

/// One element, in the machine's byte order, in the first bytes.
using Item = std::array<uint8_t, 16>;

/// The zero (kFill) or NaN (kNan) of `dtype`. Raises BufferError if the type has none.
Item make_fill_value(const Dtype& dtype, Nulls nulls);

ARROWDL_END_NAMESPACE
