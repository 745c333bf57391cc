// Casts numbers to wider types.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the elements of `array` as numbers of `to`, which find_cast has found wide enough.
void cast_numbers(const DeviceArray& array, const Type& to, ArrayParts* parts);

ARROWDL_END_NAMESPACE
