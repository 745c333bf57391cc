// Casts numbers to wider types.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl {

/// Appends the elements of `array` as numbers of `to`, which find_cast has found wide enough.
void cast_numbers(const DeviceArray& array, const Type& to, ArrayParts* parts);

}  // namespace arrowdl
