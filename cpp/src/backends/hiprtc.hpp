// Compiles the kernels for AMD's GPUs.
#pragma once

#include <string>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The kernels as machine code of the calling thread's current HIP device. Empty if AMD's run-time
/// compiler (hiprtc) is not installed, or fails.
std::string compile_for_current_device();

ARROWDL_END_NAMESPACE
