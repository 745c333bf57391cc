// Casts numbers to other types of numbers.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the elements of `array` as numbers of `to`. Floats are rounded to the nearest shorter
/// float. Raises ValueError for other values that `to` does not hold exactly, unless they are null.
void cast_numbers(const DeviceArray& array, const Type& to, ArrayParts* parts);

ARROWDL_END_NAMESPACE
