// Refuses arrays that the host cannot read, for code that runs on the CPU.
#pragma once

#include "arrowdl/device_array.hpp"
#include "backends/host_access.hpp"

namespace arrowdl {

/// Waits for the event of `array`. Raises BufferError unless the CPU can read its memory.
void require_host_readable(const DeviceArray& array, const char* verb);

}  // namespace arrowdl
