#pragma once

namespace arrowdl {

/// The version of the library that was linked, such as "0.1.0".
const char* version() noexcept;

}  // namespace arrowdl
