// Opens SYCL, by way of dpctl as a backend.
#pragma once

#include <string>

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// The runtime's backend, which the caller owns; nullptr and the reason in `*why_not` where it
/// cannot be opened.
Backend* open_oneapi(std::string* why_not);

}  // namespace arrowdl
