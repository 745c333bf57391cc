// The version of the library.
#pragma once

namespace arrowdl {

/// The version of the linked library, such as "0.1.0".
const char* version() noexcept;

}  // namespace arrowdl
