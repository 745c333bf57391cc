// NVIDIA's driver as a backend.
#pragma once

#include <string>
#include <vector>

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// What `open_cuda` of the registry does with the driver's own names. The result is the caller's.
Backend* open_cuda(const std::vector<const char*>& library_names, std::string* why_not);

}  // namespace arrowdl
