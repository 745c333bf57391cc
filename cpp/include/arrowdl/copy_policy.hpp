// Whether a conversion may copy.
#pragma once

namespace arrowdl {

/// DLPack's and the array API's `copy` keyword.
enum class Copy {
  kIfNeeded,  ///< copy=None
  kNever,     ///< copy=False: BufferError if a copy is needed
  kAlways,    ///< copy=True
};

}  // namespace arrowdl
