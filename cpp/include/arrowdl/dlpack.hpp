// Includes dlpack.h and checks its version.
#pragma once

#include <dlpack/dlpack.h>

#if DLPACK_MAJOR_VERSION != 1 || DLPACK_MINOR_VERSION < 3
#error \
    "arrowdl needs dlpack.h of DLPack 1.3 or a later 1.x; another one comes first on the include path"
#endif
