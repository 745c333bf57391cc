// The version of the library, and macros with the version of these headers.
#pragma once

#include "arrowdl/version_macros.hpp"  // IWYU pragma: export

namespace arrowdl {

/// The version of the linked library, such as "0.1.0".
const char* version() noexcept;

}  // namespace arrowdl
