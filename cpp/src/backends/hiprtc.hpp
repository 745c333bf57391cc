// Compiles the kernels for AMD's GPUs.
#pragma once

#include <string>

namespace arrowdl {

/// The kernels as machine code of the calling thread's current HIP device. Empty if AMD's run-time
/// compiler (hiprtc) is not installed, or fails.
std::string compile_for_current_device();

}  // namespace arrowdl
