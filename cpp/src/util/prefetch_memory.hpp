// Fetches memory into the cache before it is read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Begins to fetch the first 2 KiB of `size` bytes, one or more, and their last line.
inline void prefetch_memory([[maybe_unused]] const uint8_t* memory, [[maybe_unused]] int64_t size) {
#if defined(__GNUC__)
  constexpr int64_t kLine = 64;
  constexpr int64_t kMost = 32 * kLine;
  const int64_t last = std::min(size, kMost) - 1;  // may be in the next line
  __builtin_prefetch(memory);
  for (int64_t i = kLine; i < last; i += kLine) __builtin_prefetch(memory + i);
  __builtin_prefetch(memory + last);
#endif
}

ARROWDL_END_NAMESPACE
