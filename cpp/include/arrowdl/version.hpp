// The version of the library, and macros with the version of these headers.
#pragma once

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The version of the linked library, such as "0.1.0".
const char* version() noexcept;

ARROWDL_END_NAMESPACE
