// The namespace of the library, with the version of its binary interface.
#pragma once

#include "arrowdl/version_macros.hpp"  // IWYU pragma: export

/// Between these two, names are of `arrowdl` for a program, and of `arrowdl::v0_1` for the linker:
/// two versions of the library share no C++ symbol in one program, and objects that were compiled
/// with the headers of one do not link with the other.
#define ARROWDL_BEGIN_NAMESPACE \
  namespace arrowdl {           \
  inline namespace ARROWDL_ABI {
#define ARROWDL_END_NAMESPACE \
  }                           \
  }
