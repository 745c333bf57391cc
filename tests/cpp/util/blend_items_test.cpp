// Compares blended items with a model, item by item, at every offset of the bits.
#include "util/blend_items.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "support/exact_bytes.hpp"
#include "util/bit_util.hpp"

namespace arrowdl {
namespace {

using testing::ExactBytes;

template <typename T>
class BlendItems : public ::testing::Test {};

using Sizes = ::testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(BlendItems, Sizes, );  // the comma: without, Clang warns of the macro

template <typename T>
T read_item(const uint8_t* items, int64_t i) {
  T item;
  std::memcpy(&item, items + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return item;
}

/// Blends into new memory, or into the source's, as wide as the processor can or not.
template <typename T>
void expect_blended(int64_t offset, int64_t count, bool is_wide, bool is_in_place) {
  const auto seed = static_cast<unsigned>(offset * 300 + count);
  const int64_t size = count * static_cast<int64_t>(sizeof(T));
  const ExactBytes bits = ExactBytes::random((offset + count + 7) / 8, seed);
  const ExactBytes items = ExactBytes::random(size, seed + 1);
  ExactBytes source = ExactBytes::random(size, seed + 1);
  ExactBytes target(size, 0);
  uint8_t* const blended = is_in_place ? source.data() : target.data();
  const auto substitute = static_cast<T>(0xA5C3'5A3C'9669'1EE1);
  blend_items(source.data(), bits.data(), offset, count, substitute, blended, is_wide);
  for (int64_t i = 0; i < count; ++i) {
    const bool is_valid = get_bit(bits.data(), offset + i);
    ASSERT_EQ(read_item<T>(blended, i), is_valid ? read_item<T>(items.data(), i) : substitute)
        << "item " << i << " of " << count << " at " << offset;
  }
}

template <typename T>
void expect_all_blended(bool is_wide) {
  for (int64_t offset = 0; offset < 10; ++offset) {
    for (int64_t count = 0; count < 200; count += count < 70 ? 1 : 7) {
      expect_blended<T>(offset, count, is_wide, false);
      expect_blended<T>(offset, count, is_wide, true);
    }
  }
}

TYPED_TEST(BlendItems, OfSixteenBytesAtATime) { expect_all_blended<TypeParam>(false); }

TYPED_TEST(BlendItems, OfThirtyTwoBytesAtATime) {
  if (!has_wide_blend()) GTEST_SKIP() << "this processor has no AVX2";
  expect_all_blended<TypeParam>(true);
}

}  // namespace
}  // namespace arrowdl
