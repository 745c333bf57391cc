// Casts the rows of lists to lists of another kind.
#pragma once

#include <optional>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "cast/used_rows.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the buffers of lists of `to` over the values of `array`, none for lists of a fixed size.
/// Returns the values, which are still to be cast to the item type of `to`; nothing where `parts`
/// has them, since no list of `used` is valid. Raises Misfit if `to` cannot count the values, or
/// lists of `used` are not of its fixed size.
std::optional<DeviceArray> cast_lists(const DeviceArray& array, const Type& to,
                                      const UsedRows& used, ArrayParts* parts);

ARROWDL_END_NAMESPACE
