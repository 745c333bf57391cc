// A field of a struct, its run ends decoded.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// Field `i` of a struct for the converters: `array.field(i)`, but run ends, which have no bitmap
/// to take the nulls of the struct, are decoded first.
DeviceArray read_field(const DeviceArray& array, int64_t i);

}  // namespace arrowdl
