// Copies bytes with several threads, and short pieces of bytes; fetches memory into the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// How many pieces of `mean_size` bytes to prefetch: processors cannot predict pieces in random
/// order. More than a few KiB would leave the cache before it is read.
inline int64_t choose_prefetched(int64_t mean_size) noexcept {
  constexpr int64_t kBytes = int64_t{8} << 10;
  constexpr int64_t kMostPieces = 16;
  return std::clamp<int64_t>(kBytes / std::max<int64_t>(1, mean_size), 2, kMostPieces);
}

/// Copies `size` bytes. `room` bytes can be read and written: the next pieces overwrite the rest.
/// Short pieces are copied as if they had 64 bytes: sizes that vary cost a mispredicted branch
/// each.
inline void copy_piece(const uint8_t* from, int64_t size, int64_t room, uint8_t* to) noexcept {
  constexpr std::size_t kShort = 64;
  if (size <= int64_t{kShort} && room >= int64_t{kShort}) {
    std::memcpy(to, from, kShort);
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(size));
  }
}

/// Copies `size` bytes: a megabyte or more on several threads, since one is slower than the memory.
void copy_bytes(uint8_t* target, const uint8_t* source, int64_t size) noexcept;

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
