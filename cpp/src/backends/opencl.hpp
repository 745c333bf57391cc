// Opens OpenCL as a backend.
#pragma once

#include <string>

#include "arrowdl/backend.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The backend of OpenCL, owned by the caller; nullptr, with the reason in `*why_not`, if it cannot
/// be opened.
Backend* open_opencl(std::string* why_not);

ARROWDL_END_NAMESPACE
