// Whether a conversion may copy.
#pragma once

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// DLPack's and the array API's `copy` keyword.
enum class Copy {
  kIfNeeded,  ///< copy=None
  kNever,     ///< copy=False: BufferError if a copy is needed
  kAlways,    ///< copy=True
};

ARROWDL_END_NAMESPACE
