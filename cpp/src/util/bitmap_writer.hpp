// Appends bits to a bitmap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "util/bit_util.hpp"

namespace arrowdl {

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
    for (; count > 0 && (position_ & 7) != 0; --count) append(get_bit(bits, offset++));
    if (count == 0) return;
    copy_bits(bits, offset, count, target_ + (position_ >> 3));
    position_ += count;
  }

  /// Appends `bit` `count` times.
  void append_run(bool bit, int64_t count) noexcept {
    for (; count > 0 && (position_ & 7) != 0; --count) append(bit);
    std::memset(target_ + (position_ >> 3), bit ? 0xFF : 0, static_cast<std::size_t>(count >> 3));
    position_ += count & ~int64_t{7};
    for (count &= 7; count > 0; --count) append(bit);
  }

 private:
  uint8_t* target_;
  int64_t position_ = 0;
};

}  // namespace arrowdl
