// Refuses arrays that the host cannot read, for code that runs on the CPU.
#pragma once

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// Raises BufferError unless the CPU may read memory on `device`. `verb` completes "cannot … on
/// cuda:0".
void require_host_readable(const Device& device, const char* verb);

/// The same for the memory of `array`. Waits for its event.
void require_host_readable(const DeviceArray& array, const char* verb);

}  // namespace arrowdl
