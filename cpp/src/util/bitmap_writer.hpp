// Appends bits to a bitmap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends to `target`, which may be uninitialised: the rest of the last byte is 0.
class BitmapWriter {
 public:
  explicit BitmapWriter(uint8_t* target) noexcept : target_(target) {}

  void append(bool bit) noexcept {
    uint8_t& byte = target_[position_ >> 3];
    if ((position_ & 7) == 0) byte = 0;
    byte = static_cast<uint8_t>(byte | static_cast<unsigned>(bit) << (position_ & 7));
    ++position_;
  }

  /// Appends bits [offset, offset + count) of `bits`.
  void append(const uint8_t* bits, int64_t offset, int64_t count) {
    const int64_t first = count <= 64 ? count : -position_ & 7;
    if (first > 0) append_word(load_bits(bits, offset, first), first);
    if (first == count) return;
    copy_bits(bits, offset + first, count - first, target_ + (position_ >> 3));
    position_ += count - first;
  }

  /// Appends `bit` `count` times.
  void append_run(bool bit, int64_t count) noexcept {
    const int64_t first = std::min(count, -position_ & 7);
    if (first > 0) append_word(bit ? ~uint64_t{0} >> (64 - first) : 0, first);
    count -= first;
    if (count >= 8) {  // the condition tells GCC that the size is not negative
      std::memset(target_ + (position_ >> 3), bit ? 0xFF : 0, static_cast<std::size_t>(count >> 3));
      position_ += count & ~int64_t{7};
    }
    for (count &= 7; count > 0; --count) append(bit);
  }

 private:
  /// Appends the `count` lowest bits of `word`, 1 to 64. The others are 0.
  void append_word(uint64_t word, int64_t count) noexcept {
    uint8_t* to = target_ + (position_ >> 3);
    const int64_t used = position_ & 7;
    position_ += count;
    if (used != 0) {
      *to = static_cast<uint8_t>(*to | word << used);
      ++to;
      word >>= 8 - used;
      count -= 8 - used;
    }
    for (; count > 0; count -= 8, word >>= 8) *to++ = static_cast<uint8_t>(word);
  }

  uint8_t* target_;
  int64_t position_ = 0;
};

ARROWDL_END_NAMESPACE
