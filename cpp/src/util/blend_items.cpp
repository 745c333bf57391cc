// Blends without a branch, since nulls cannot be predicted: with AVX2, where the processor has it,
// or with masks of 16 bytes.
#include "util/blend_items.hpp"

#include <array>
#include <cstring>

#include "util/bit_util.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define ARROWDL_AVX2 __attribute__((target("avx2")))
#include <immintrin.h>
#endif

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The masks of a group of items, by the number that their validity bits make: all bits set for a
/// valid item, none for a null. A group fits a vector register.
template <typename T>
struct MaskTable {
  static constexpr std::size_t kGroup = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
  using Masks = std::array<T, kGroup>;

  constexpr MaskTable() {
    for (std::size_t number = 0; number < masks.size(); ++number) {
      for (std::size_t i = 0; i < kGroup; ++i) {
        masks[number][i] = ((number >> i) & 1) != 0 ? static_cast<T>(~T{0}) : T{0};
      }
    }
  }

  std::array<Masks, std::size_t{1} << kGroup> masks{};
};

template <typename T>
alignas(64) constexpr MaskTable<T> kMaskTable;

/// Blends `words` times 64 items.
template <typename T>
void blend_words(const uint8_t* source, const uint8_t* bits, int64_t offset, int64_t words,
                 T substitute, uint8_t* target) {
  constexpr std::size_t kGroup = MaskTable<T>::kGroup;
  for (int64_t word = 0; word < words; ++word) {
    uint64_t valid = load_64_bits(bits, offset + 64 * word);
    for (std::size_t first = 0; first < 64; first += kGroup, valid >>= kGroup) {
      const auto& masks = kMaskTable<T>.masks[valid & ((1U << kGroup) - 1)];
      T items[kGroup];
      std::memcpy(items, source, sizeof(items));
      for (std::size_t i = 0; i < kGroup; ++i) {
        items[i] = static_cast<T>(substitute ^ ((items[i] ^ substitute) & masks[i]));
      }
      std::memcpy(target, items, sizeof(items));
      source += sizeof(items);
      target += sizeof(items);
    }
  }
}

#if defined(ARROWDL_AVX2)
// Blend `words` times 64 items. A shift brings the bit of each lane to the lane's highest bit, by
// which the processor blends.

ARROWDL_AVX2 bool blend_wide(const uint8_t* source, const uint8_t* bits, int64_t offset,
                             int64_t words, uint32_t substitute, uint8_t* target) {
  const __m256 other = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(substitute)));
  const __m256i shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
  for (int64_t word = 0; word < words; ++word) {
    uint64_t valid = load_64_bits(bits, offset + 64 * word);
    for (int i = 0; i < 8; ++i, valid >>= 8, source += 32, target += 32) {
      const __m256i lanes = _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(valid)));
      const __m256 items = _mm256_loadu_ps(reinterpret_cast<const float*>(source));
      const __m256 mask = _mm256_castsi256_ps(_mm256_sllv_epi32(lanes, shifts));
      _mm256_storeu_ps(reinterpret_cast<float*>(target), _mm256_blendv_ps(other, items, mask));
    }
  }
  return true;
}

ARROWDL_AVX2 bool blend_wide(const uint8_t* source, const uint8_t* bits, int64_t offset,
                             int64_t words, uint64_t substitute, uint8_t* target) {
  const __m256d other = _mm256_castsi256_pd(_mm256_set1_epi64x(static_cast<int64_t>(substitute)));
  const __m256i shifts = _mm256_setr_epi64x(63, 62, 61, 60);
  for (int64_t word = 0; word < words; ++word) {
    uint64_t valid = load_64_bits(bits, offset + 64 * word);
    for (int i = 0; i < 16; ++i, valid >>= 4, source += 32, target += 32) {
      const __m256i lanes = _mm256_set1_epi64x(static_cast<int64_t>(valid));
      const __m256d items = _mm256_loadu_pd(reinterpret_cast<const double*>(source));
      const __m256d mask = _mm256_castsi256_pd(_mm256_sllv_epi64(lanes, shifts));
      _mm256_storeu_pd(reinterpret_cast<double*>(target), _mm256_blendv_pd(other, items, mask));
    }
  }
  return true;
}
#endif

/// Items of other sizes, and other processors.
template <typename T>
bool blend_wide(const uint8_t* /*source*/, const uint8_t* /*bits*/, int64_t /*offset*/,
                int64_t /*words*/, T /*substitute*/, uint8_t* /*target*/) {
  return false;
}

}  // namespace

bool has_wide_blend() {
#if defined(ARROWDL_AVX2)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  return has_avx2;
#else
  return false;
#endif
}

template <typename T>
void blend_items(const uint8_t* source, const uint8_t* bits, int64_t offset, int64_t count,
                 T substitute, uint8_t* target, bool is_wide) {
  const int64_t words = count / 64;
  if (!is_wide || !blend_wide(source, bits, offset, words, substitute, target)) {
    blend_words(source, bits, offset, words, substitute, target);
  }
  for (int64_t i = 64 * words; i < count; ++i) {
    const auto at = i * static_cast<int64_t>(sizeof(T));
    T item = substitute;
    if (get_bit(bits, offset + i)) std::memcpy(&item, source + at, sizeof(T));
    std::memcpy(target + at, &item, sizeof(T));
  }
}

template void blend_items(const uint8_t*, const uint8_t*, int64_t, int64_t, uint8_t, uint8_t*,
                          bool);
template void blend_items(const uint8_t*, const uint8_t*, int64_t, int64_t, uint16_t, uint8_t*,
                          bool);
template void blend_items(const uint8_t*, const uint8_t*, int64_t, int64_t, uint32_t, uint8_t*,
                          bool);
template void blend_items(const uint8_t*, const uint8_t*, int64_t, int64_t, uint64_t, uint8_t*,
                          bool);

ARROWDL_END_NAMESPACE
