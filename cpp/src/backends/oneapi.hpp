// Opens SYCL as a backend, through dpctl.
#pragma once

#include <string>

#include "arrowdl/backend.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The backend of SYCL, owned by the caller; nullptr, with the reason in `*why_not`, if it cannot
/// be opened.
Backend* open_oneapi(std::string* why_not);

ARROWDL_END_NAMESPACE
