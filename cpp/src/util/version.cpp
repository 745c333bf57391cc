// The version that CMake passes.
#include "arrowdl/version.hpp"

ARROWDL_BEGIN_NAMESPACE

const char* version() noexcept { return ARROWDL_VERSION; }

ARROWDL_END_NAMESPACE
