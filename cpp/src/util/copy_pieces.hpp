// Copies many short pieces of memory, one after the other.
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

ARROWDL_END_NAMESPACE
