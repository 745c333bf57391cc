// Describes OpenCL's status codes.
#pragma once

#include <string>

namespace arrowdl {

/// "CL_INVALID_EVENT (-58)"
std::string describe_opencl_status(int status);

}  // namespace arrowdl
