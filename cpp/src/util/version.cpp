// The version that CMake passes.
#include "arrowdl/version.hpp"

namespace arrowdl {

const char* version() noexcept { return ARROWDL_VERSION; }

}  // namespace arrowdl
