// The values that replace nulls.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "arrowdl/device_array.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/nulls.hpp"

ARROWDL_BEGIN_NAMESPACE

/// One element, in the machine's byte order, in the first bytes.
using Item = std::array<uint8_t, 16>;

bool is_zero(const Number& number);

/// `number` as an element of `dtype`, rounded to the nearest float if it is one; nullopt if the
/// type does not hold it. A bool is 0 or 1.
std::optional<Item> find_item(const Number& number, const Dtype& dtype);

/// What stands in for nulls of `dtype` by a policy that replaces them. Raises BufferError if the
/// type has no zero or NaN, ValueError if it does not hold the value.
Item make_fill_value(const Dtype& dtype, const Nulls& nulls);

/// Copies elements of `width` bytes, 1, 2, 4 or 8, from `source`, one for each row of `rows`, and
/// `item` for each row that is null. `rows` has a bitmap; `target` may be `source`. Host memory
/// only.
void copy_without_nulls(const DeviceArray& rows, int64_t width, const uint8_t* source,
                        const Item& item, uint8_t* target);

ARROWDL_END_NAMESPACE
