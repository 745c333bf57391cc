// Describes OpenCL's status codes.
#pragma once

#include <string>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// "CL_INVALID_EVENT (-58)"
std::string describe_opencl_status(int status);

ARROWDL_END_NAMESPACE
