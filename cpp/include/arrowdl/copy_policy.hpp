// Whether an exchange may copy.
#pragma once

namespace arrowdl {

/// DLPack's and the array API's `copy` keyword.
enum class Copy {
  kIfNeeded,  ///< copy=None
  kNever,     ///< copy=False: BufferError where a copy is needed
  kAlways,    ///< copy=True
};

}  // namespace arrowdl
