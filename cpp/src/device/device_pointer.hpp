// Offsets data pointers of any device. No other file does pointer arithmetic on them.
#pragma once

#include <cstdint>

#include "arrowdl/device.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises BufferError if data on `device` is an opaque handle (OpenCL's cl_mem), into which an
/// offset of `bytes` is impossible.
void require_pointers(const Device& device, int64_t bytes);

/// `data` plus `bytes`; nullptr stays nullptr. Raises BufferError for a handle, unless `bytes` is
/// 0.
inline const uint8_t* offset_pointer(const Device& device, const void* data, int64_t bytes) {
  const auto* first = static_cast<const uint8_t*>(data);
  if (data == nullptr || bytes == 0) return first;
  require_pointers(device, bytes);
  return first + bytes;
}

ARROWDL_END_NAMESPACE
