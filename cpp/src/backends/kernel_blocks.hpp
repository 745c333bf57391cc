// What a thread of the kernels reads or writes at once, and the results of many, as in threads.cuh.
#pragma once

#include <cstdint>
#include <cstring>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

constexpr int64_t kBlockBytes = 16;

/// The numbers that the threads of one kernel change.
constexpr int64_t kResults = 1024;

/// Threads for a kernel over `count` elements that changes results: each thread does so once.
constexpr int64_t count_threads(int64_t count) noexcept {
  constexpr int64_t kMost = int64_t{1} << 18;  // more than a GPU runs at once
  return count < kMost ? count : kMost;
}

/// The blocks of `nbytes` bytes, the last one in part.
constexpr int64_t count_blocks(int64_t nbytes) noexcept {
  return nbytes / kBlockBytes + (nbytes % kBlockBytes == 0 ? 0 : 1);
}

/// A block of one element again and again, as two arguments of a kernel.
struct Pattern {
  Pattern(const void* item, int64_t itemsize) noexcept {
    uint8_t bytes[kBlockBytes];
    for (int64_t at = 0; at < kBlockBytes; at += itemsize) {
      std::memcpy(bytes + at, item, static_cast<std::size_t>(itemsize));
    }
    std::memcpy(&low, bytes, sizeof(low));
    std::memcpy(&high, bytes + sizeof(low), sizeof(high));
  }

  uint64_t low;
  uint64_t high;
};

ARROWDL_END_NAMESPACE
