// What every kernel that runs on the CPU asks first.
#pragma once

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// Raises BufferError unless the CPU may read memory on `device`. `verb` completes "cannot … on
/// cuda:0".
void require_host_readable(const Device& device, const char* verb);

/// The same for the memory of `array`, once its event has happened: waits for it.
void require_host_readable(const DeviceArray& array, const char* verb);

}  // namespace arrowdl
