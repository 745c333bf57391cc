// HIP as a backend.
#pragma once

#include <string>
#include <vector>

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// What `open_hip` of the registry does with HIP's own names. The result is the caller's.
Backend* open_hip(const std::vector<const char*>& library_names, std::string* why_not);

}  // namespace arrowdl
