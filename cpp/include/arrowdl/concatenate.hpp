// Concatenates arrays.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// The rows of all `arrays`, one array after the other, in new host memory; each buffer is gathered
/// once. A single array, or the only one with rows, is returned as it is. Dictionaries that differ
/// are unified by value. Raises ValueError if there is no array or types or devices differ,
/// BufferError for memory that the host cannot read and for what the type cannot hold, such as
/// int32 offsets that overflow.
DeviceArray concatenate(const std::vector<DeviceArray>& arrays);

}  // namespace arrowdl
