// Bitmaps: least significant bit first, at any bit offset.
#pragma once

#include <cstdint>

namespace arrowdl {

inline bool get_bit(const uint8_t* bits, int64_t i) { return ((bits[i >> 3] >> (i & 7)) & 1) != 0; }

/// How many of bits [offset, offset + count) are set.
int64_t count_set_bits(const uint8_t* bits, int64_t offset, int64_t count);

/// Bits [offset, offset + count) as bytes 0 and 1.
void unpack_bits(const uint8_t* bits, int64_t offset, int64_t count, uint8_t* target);

/// Bytes (any non-zero is set) as bits from bit 0 of `target`; the last byte is padded with 0.
void pack_bits(const uint8_t* bytes, int64_t count, uint8_t* target);

/// Bits [offset, offset + count) moved to bit 0 of `target`, which has (count + 7) / 8 bytes; the
/// last byte is padded with 0.
void copy_bits(const uint8_t* bits, int64_t offset, int64_t count, uint8_t* target);

/// The same for the conjunction of two bitmaps.
void and_bits(const uint8_t* a, int64_t a_offset, const uint8_t* b, int64_t b_offset, int64_t count,
              uint8_t* target);

}  // namespace arrowdl
