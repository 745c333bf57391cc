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

/// More bytes than any memory has. Source: physical addresses of x86-64 and of Armv8 have 52 bits.
constexpr int64_t kAddressSpace = int64_t{1} << 52;

/// Whether `bytes` bytes from `data` on end before the addresses do.
inline bool is_addressable(const void* data, int64_t bytes) noexcept {
  return bytes >= 0 && bytes <= kAddressSpace &&
         reinterpret_cast<uintptr_t>(data) <= UINTPTR_MAX - static_cast<uint64_t>(bytes);
}

ARROWDL_END_NAMESPACE
