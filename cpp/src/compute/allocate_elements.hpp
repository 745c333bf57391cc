// Allocates a buffer of elements.
#pragma once

#include <cstdint>

#include "arrowdl/owned.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE

/// New host memory for `count` elements of `width` bytes, at `*target`. Raises MemoryError, also if
/// the size overflows.
inline Buffer allocate_elements(int64_t count, int64_t width, uint8_t** target) {
  int64_t size = 0;
  if (!checked_multiply(count, width, &size)) size = -1;  // no memory has this size
  return Buffer::allocate(size, target);
}

/// The same for elements of T.
template <typename T>
Buffer allocate_elements(int64_t count, T** target) {
  uint8_t* bytes = nullptr;
  Buffer buffer = allocate_elements(count, int64_t{sizeof(T)}, &bytes);
  *target = reinterpret_cast<T*>(bytes);
  return buffer;
}

ARROWDL_END_NAMESPACE
