// Refuses work of the CPU on memory that it cannot read.
#pragma once

#include "arrowdl/device.hpp"

namespace arrowdl {

/// Raises BufferError unless the CPU can read memory on `device`. `verb` completes "cannot … on
/// cuda:0".
void require_host_readable(const Device& device, const char* verb);

}  // namespace arrowdl
