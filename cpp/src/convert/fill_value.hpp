// The values that replace nulls.
#pragma once

#include <array>
#include <cstdint>

#include "arrowdl/device_array.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/nulls.hpp"

ARROWDL_BEGIN_NAMESPACE

/// One element, in the machine's byte order, in the first bytes.
using Item = std::array<uint8_t, 16>;

/// The zero (kFill) or NaN (kNan) of `dtype`. Raises BufferError if the type has none.
Item make_fill_value(const Dtype& dtype, Nulls nulls);

/// Copies elements of `width` bytes, 1, 2, 4 or 8, from `source`, one for each row of `rows`, and
/// `item` for each row that is null. `rows` has a bitmap; `target` may be `source`. Host memory
/// only.
void copy_without_nulls(const DeviceArray& rows, int64_t width, const uint8_t* source,
                        const Item& item, uint8_t* target);

ARROWDL_END_NAMESPACE
