// The one place where a data pointer on a device moves.
#pragma once

#include <cstdint>

#include "arrowdl/device.hpp"

namespace arrowdl {

/// Raises BufferError for `bytes` into a device's opaque handle (OpenCL's cl_mem).
void require_pointers(const Device& device, int64_t bytes);

/// `data` moved by `bytes`; nullptr stays one. Raises BufferError where it is a handle, which
/// cannot move.
inline const uint8_t* offset_pointer(const Device& device, const void* data, int64_t bytes) {
  const auto* first = static_cast<const uint8_t*>(data);
  if (data == nullptr || bytes == 0) return first;
  require_pointers(device, bytes);
  return first + bytes;
}

}  // namespace arrowdl
