// Casts numbers to other types of numbers.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "cast/used_rows.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the elements of `array` as numbers of `to`. Floats are rounded to the nearest shorter
/// float. Raises ValueError for other values of `used` that `to` does not hold exactly, unless they
/// are null.
void cast_numbers(const DeviceArray& array, const Type& to, const UsedRows& used,
                  ArrayParts* parts);

ARROWDL_END_NAMESPACE
