// Where backends are listed. Each of these opens one runtime, once; it returns nullptr and says why
// in `*why_not` where it cannot. What it returns lives as long as the process.
#pragma once

#include <string>

#include "arrowdl/backend.hpp"

namespace arrowdl {

Backend* open_cuda(std::string* why_not);
Backend* open_hip(std::string* why_not);
Backend* open_oneapi(std::string* why_not);
Backend* open_opencl(std::string* why_not);

}  // namespace arrowdl
