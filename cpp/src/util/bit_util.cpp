// Bitmap kernels of the CPU, a word or 16 bytes at a time.
#include "util/bit_util.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr uint64_t kOneInEveryByte = 0x0101010101010101;

/// The eight bytes of a byte's bits, in memory order on any machine.
constexpr std::array<std::array<uint8_t, 8>, 256> make_unpacked_table() {
  std::array<std::array<uint8_t, 8>, 256> table{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t bit = 0; bit < 8; ++bit) {
      table[byte][bit] = static_cast<uint8_t>((byte >> bit) & 1);
    }
  }
  return table;
}

alignas(64) constexpr auto kUnpacked = make_unpacked_table();

void store_word(uint64_t word, uint8_t* p) {
  for (int i = 0; i < 8; ++i) p[i] = static_cast<uint8_t>(word >> (8 * i));
}

#if defined(__SSE2__)
/// The 128 bytes of the bits of 16 bytes: each byte is brought into eight lanes, then each lane
/// keeps its bit.
void unpack_16_bytes(const uint8_t* bits, uint8_t* target) {
  const __m128i own_bit = _mm_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m128i one = _mm_set1_epi8(1);
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bits));
  const __m128i twice[] = {_mm_unpacklo_epi8(bytes, bytes), _mm_unpackhi_epi8(bytes, bytes)};
  const __m128i four_times[] = {
      _mm_unpacklo_epi16(twice[0], twice[0]), _mm_unpackhi_epi16(twice[0], twice[0]),
      _mm_unpacklo_epi16(twice[1], twice[1]), _mm_unpackhi_epi16(twice[1], twice[1])};
  auto* out = reinterpret_cast<__m128i*>(target);
  for (const __m128i v : four_times) {
    for (const __m128i lanes : {_mm_unpacklo_epi32(v, v), _mm_unpackhi_epi32(v, v)}) {
      const __m128i is_set = _mm_cmpeq_epi8(_mm_and_si128(lanes, own_bit), own_bit);
      _mm_storeu_si128(out++, _mm_and_si128(is_set, one));
    }
  }
}
#endif

/// The bits that `next` gives to bit 0 of `target`: `next(i, n)` is bits [i, i + n) of the source.
template <typename Next>
void fill_bits(int64_t count, uint8_t* target, Next next) {
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) store_word(next(i, 64), target + (i >> 3));
  if (i == count) return;
  const uint64_t rest = next(i, count - i);
  for (int64_t bit = i; bit < count; bit += 8) {
    target[bit >> 3] = static_cast<uint8_t>(rest >> (bit - i));
  }
}

/// Bit i is set when byte i of `bytes` is not zero.
uint8_t pack_eight(const uint8_t* bytes) {
  uint64_t word = load_word(bytes);
  word |= word >> 4;
  word |= word >> 2;
  word |= word >> 1;
  // Moves bit 8 * i to bit 56 + i; no two products meet, so nothing carries.
  return static_cast<uint8_t>(((word & kOneInEveryByte) * 0x0102040810204080) >> 56);
}

}  // namespace

uint64_t load_few_bits(const uint8_t* bits, int64_t offset, int64_t count) {
  const uint8_t* p = bits + (offset >> 3);
  const int64_t shift = offset & 7;
  const int64_t last_byte = (shift + count - 1) >> 3;
  uint64_t word = 0;
  for (int64_t i = 0; i <= last_byte && i < 8; ++i) word |= static_cast<uint64_t>(p[i]) << (8 * i);
  word >>= shift;
  if (last_byte == 8) word |= static_cast<uint64_t>(p[8]) << (64 - shift);
  return word & (~uint64_t{0} >> (64 - count));
}

int64_t count_set_bits(const uint8_t* bits, int64_t offset, int64_t count) {
  int64_t set = 0;
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    set += count_set_bits(load_64_bits(bits, offset + i));
  }
  if (i < count) set += count_set_bits(load_bits(bits, offset + i, count - i));
  return set;
}

bool has_unset_bits(const uint8_t* bits, int64_t offset, int64_t count) {
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    if (load_64_bits(bits, offset + i) != ~uint64_t{0}) return true;
  }
  if (i == count) return false;
  return load_bits(bits, offset + i, count - i) != ~uint64_t{0} >> (64 - (count - i));
}

void unpack_bits(const uint8_t* bits, int64_t offset, int64_t count, uint8_t* target) {
  if (count == 0) return;  // an empty bitmap may be NULL
  int64_t i = 0;
  for (; i < count && ((offset + i) & 7) != 0; ++i) target[i] = get_bit(bits, offset + i);
  const uint8_t* byte = bits + ((offset + i) >> 3);
#if defined(__SSE2__)
  for (; i + 128 <= count; i += 128, byte += 16) unpack_16_bytes(byte, target + i);
#endif
  for (; i + 8 <= count; i += 8) std::memcpy(target + i, kUnpacked[*byte++].data(), 8);
  for (; i < count; ++i) target[i] = get_bit(bits, offset + i);
}

void pack_bits(const uint8_t* bytes, int64_t count, uint8_t* target) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) target[i >> 3] = pack_eight(bytes + i);
  if (i == count) return;
  uint8_t rest[8] = {};
  std::memcpy(rest, bytes + i, static_cast<std::size_t>(count - i));
  target[i >> 3] = pack_eight(rest);
}

void copy_bits(const uint8_t* bits, int64_t offset, int64_t count, uint8_t* target) {
  fill_bits(count, target, [=](int64_t i, int64_t n) { return load_bits(bits, offset + i, n); });
}

void and_bits(const uint8_t* a, int64_t a_offset, const uint8_t* b, int64_t b_offset, int64_t count,
              uint8_t* target) {
  fill_bits(count, target, [=](int64_t i, int64_t n) {
    return load_bits(a, a_offset + i, n) & load_bits(b, b_offset + i, n);
  });
}

bool has_only_canonical_bools(const uint8_t* bytes, int64_t count) {
  constexpr int64_t kBlock = 4096;  // long enough to be vectorised, short enough to end early
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t end = std::min(start + kBlock, count);
    uint8_t seen = 0;
    for (int64_t i = start; i < end; ++i) seen = static_cast<uint8_t>(seen | bytes[i]);
    if (seen > 1) return false;
  }
  return true;
}

void canonicalize_bools(const uint8_t* bytes, int64_t count, uint8_t* target) {
  for (int64_t i = 0; i < count; ++i) target[i] = bytes[i] != 0;
}

ARROWDL_END_NAMESPACE
