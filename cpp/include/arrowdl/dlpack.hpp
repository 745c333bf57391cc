// dlpack.h, of a version that has what arrowdl needs.
#pragma once

#include <dlpack/dlpack.h>

#if DLPACK_MAJOR_VERSION != 1 || DLPACK_MINOR_VERSION < 3
#error \
    "arrowdl needs dlpack.h of DLPack 1.3 or a later 1.x; another one is first on the include path"
#endif
