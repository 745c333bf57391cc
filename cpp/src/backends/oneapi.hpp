// Opens SYCL as a backend, through dpctl.
#pragma once

#include <string>

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// The backend of SYCL, owned by the caller; nullptr, with the reason in `*why_not`, if it cannot
/// be opened.
Backend* open_oneapi(std::string* why_not);

}  // namespace arrowdl
