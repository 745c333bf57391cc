// Reads and writes bitmaps in host memory: least significant bit first, at any bit offset.
//
// None of these reads a byte of a bitmap without a bit of the range, or writes a byte of the target
// behind the range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Bytes of a bitmap of `count` bits.
constexpr int64_t bitmap_size(int64_t count) { return count / 8 + (count % 8 != 0 ? 1 : 0); }

inline bool get_bit(const uint8_t* bits, int64_t i) { return ((bits[i >> 3] >> (i & 7)) & 1) != 0; }

/// The number of set bits, without the library call that compilers make where the processor may
/// lack the instruction.
inline int64_t count_set_bits(uint64_t word) {
  word -= (word >> 1) & 0x5555555555555555;
  word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<int64_t>((word * 0x0101010101010101) >> 56);
}

/// The index of the lowest set bit. Requires one.
inline int64_t find_lowest_bit(uint64_t word) {
#if defined(__GNUC__)
  return __builtin_ctzll(word);
#else
  return count_set_bits((word - 1) & ~word);
#endif
}

/// Eight bytes as a little-endian word.
inline uint64_t load_word(const uint8_t* p) {
  uint64_t word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  std::memcpy(&word, p, sizeof(word));
#else
  for (int i = 0; i < 8; ++i) word |= static_cast<uint64_t>(p[i]) << (8 * i);
#endif
  return word;
}

/// Bits [offset, offset + 64), lowest first.
inline uint64_t load_64_bits(const uint8_t* bits, int64_t offset) {
  const uint8_t* p = bits + (offset >> 3);
  const int64_t shift = offset & 7;
  const uint64_t word = load_word(p);
  return shift == 0 ? word : word >> shift | static_cast<uint64_t>(p[8]) << (64 - shift);
}

/// Bits [offset, offset + count), 1 to 63 of them, lowest first and the rest 0.
uint64_t load_few_bits(const uint8_t* bits, int64_t offset, int64_t count);

/// The same of 1 to 64 bits.
inline uint64_t load_bits(const uint8_t* bits, int64_t offset, int64_t count) {
  return count == 64 ? load_64_bits(bits, offset) : load_few_bits(bits, offset, count);
}

/// Calls `visit(i)` for every i in [0, count) where bit offset + i is not set, in order.
template <typename Visit>
void for_each_unset_bit(const uint8_t* bits, int64_t offset, int64_t count, Visit visit) {
  for (int64_t start = 0; start < count; start += 64) {
    const int64_t n = std::min<int64_t>(64, count - start);
    const uint64_t whole = ~uint64_t{0} >> (64 - n);
    uint64_t unset = load_bits(bits, offset + start, n) ^ whole;
    for (; unset != 0; unset &= unset - 1) {
      visit(start + find_lowest_bit(unset));
    }
  }
}

/// The number of set bits among [offset, offset + count).
int64_t count_set_bits(const uint8_t* bits, int64_t offset, int64_t count);

/// Whether any of bits [offset, offset + count) is not set. Stops at the first.
bool has_unset_bits(const uint8_t* bits, int64_t offset, int64_t count);

/// Bits [offset, offset + count) as bytes 0 and 1.
void unpack_bits(const uint8_t* bits, int64_t offset, int64_t count, uint8_t* target);

/// Bytes (any non-zero is set) as bits from bit 0 of `target`; the last byte is padded with 0.
void pack_bits(const uint8_t* bytes, int64_t count, uint8_t* target);

/// Bits [offset, offset + count) moved to bit 0 of `target`, which has (count + 7) / 8 bytes; the
/// last byte is padded with 0.
void copy_bits(const uint8_t* bits, int64_t offset, int64_t count, uint8_t* target);

/// The same for the AND of two bitmaps.
void and_bits(const uint8_t* a, int64_t a_offset, const uint8_t* b, int64_t b_offset, int64_t count,
              uint8_t* target);

/// Whether every byte is 0 or 1. Arrow's bool8 is true for any non-zero byte; consumers of a DLPack
/// bool expect 0 and 1 (jax 0.10's `where` treats 2 as false).
bool has_only_canonical_bools(const uint8_t* bytes, int64_t count);

/// Copies bytes as 0 or 1, any non-zero one as 1. `target` may be `bytes`.
void canonicalize_bools(const uint8_t* bytes, int64_t count, uint8_t* target);

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
