// Casts times, durations and dates to other units.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "cast/used_rows.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the elements of `array` in the units of `to`. Raises Misfit for values of `used` that
/// are not a whole number of these units, or are too large, unless they are null.
void cast_units(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts);

ARROWDL_END_NAMESPACE
