// Compares the bitmap functions with a bit-by-bit model, at every offset.
#include "util/bit_util.hpp"

#include <gtest/gtest.h>

#include "support/exact_bytes.hpp"

namespace arrowdl {
namespace {

using testing::ExactBytes;

/// Calls `check(offset, count, bits)` for every bit offset and many counts, with a bitmap that
/// ends at the byte of the last bit.
template <typename Check>
void for_each_window(Check check) {
  for (int64_t offset = 0; offset < 20; ++offset) {
    for (int64_t count = 0; count < 300; ++count) {
      const ExactBytes bits =
          ExactBytes::random((offset + count + 7) / 8, static_cast<unsigned>(offset * 300 + count));
      check(offset, count, bits.data());
    }
  }
}

void expect_bit(bool expected, const ExactBytes& bits, int64_t i, int64_t offset, int64_t count) {
  ASSERT_EQ(expected, get_bit(bits.data(), i))
      << "bit " << i << " of " << count << " at " << offset;
}

/// `bits` holds `count` bits that `expected` gives, and zeros up to the byte's end.
template <typename Expected>
void expect_bits(Expected expected, const ExactBytes& bits, int64_t offset, int64_t count) {
  for (int64_t i = 0; i < count; ++i) expect_bit(expected(i), bits, i, offset, count);
  for (int64_t i = count; i < bits.size() * 8; ++i) expect_bit(false, bits, i, offset, count);
}

TEST(Bits, CountsAnyWindow) {
  for_each_window([](int64_t offset, int64_t count, const uint8_t* bits) {
    int64_t expected = 0;
    for (int64_t i = 0; i < count; ++i) expected += get_bit(bits, offset + i);
    ASSERT_EQ(expected, count_set_bits(bits, offset, count)) << count << " bits at " << offset;
  });
}

TEST(Bits, FindsTheOneUnsetBitOfAnyWindow) {
  for (int64_t offset = 0; offset < 20; ++offset) {
    for (int64_t count = 1; count < 200; ++count) {
      const auto flip = [offset](uint8_t* bits, int64_t i) {
        bits[(offset + i) >> 3] ^= static_cast<uint8_t>(1 << ((offset + i) & 7));
      };
      ExactBytes bits((offset + count + 7) / 8, 0);  // beside the window no bit is set
      for (int64_t i = 0; i < count; ++i) flip(bits.data(), i);
      ASSERT_FALSE(has_unset_bits(bits.data(), offset, count)) << count << " bits at " << offset;
      for (int64_t i = 0; i < count; ++i) {
        flip(bits.data(), i);
        ASSERT_TRUE(has_unset_bits(bits.data(), offset, count))
            << "bit " << i << " of " << count << " at " << offset;
        flip(bits.data(), i);
      }
    }
  }
}

TEST(Bits, UnpacksAnyWindow) {
  for_each_window([](int64_t offset, int64_t count, const uint8_t* bits) {
    ExactBytes target(count, 0xAA);
    unpack_bits(bits, offset, count, target.data());
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(get_bit(bits, offset + i), target[i]) << i << " of " << count << " at " << offset;
    }
  });
}

TEST(Bits, CopiesAnyWindow) {
  for_each_window([](int64_t offset, int64_t count, const uint8_t* bits) {
    ExactBytes target((count + 7) / 8, 0xAA);
    copy_bits(bits, offset, count, target.data());
    expect_bits([&](int64_t i) { return get_bit(bits, offset + i); }, target, offset, count);
  });
}

TEST(Bits, AndsWindowsAtAnyTwoOffsets) {
  for_each_window([](int64_t offset, int64_t count, const uint8_t* a) {
    for (const int64_t b_offset : {0, 3, 8, 15}) {
      const ExactBytes b =
          ExactBytes::random((b_offset + count + 7) / 8, static_cast<unsigned>(b_offset));
      ExactBytes target((count + 7) / 8, 0xAA);
      and_bits(a, offset, b.data(), b_offset, count, target.data());
      expect_bits(
          [&](int64_t i) { return get_bit(a, offset + i) && get_bit(b.data(), b_offset + i); },
          target, offset, count);
    }
  });
}

TEST(Bits, PacksAnyNonZeroByteAsSet) {
  for (int64_t count = 0; count < 300; ++count) {
    ExactBytes bytes = ExactBytes::random(count, static_cast<unsigned>(count));
    for (int64_t i = 0; i < count; i += 3) bytes[i] = 0;
    ExactBytes target((count + 7) / 8, 0xAA);
    pack_bits(bytes.data(), count, target.data());
    expect_bits([&](int64_t i) { return bytes[i] != 0; }, target, 0, count);
  }
}

TEST(Bits, PacksEveryByteValueInEveryPlace) {
  for (int value = 1; value < 256; ++value) {
    for (int64_t place = 0; place < 8; ++place) {
      uint8_t bytes[8] = {};
      bytes[place] = static_cast<uint8_t>(value);
      uint8_t target = 0;
      pack_bits(bytes, 8, &target);
      ASSERT_EQ(1 << place, target) << value;
    }
  }
}

TEST(Bits, TakesNullForNoBits) {
  unpack_bits(nullptr, 13, 0, nullptr);
  copy_bits(nullptr, 13, 0, nullptr);
  and_bits(nullptr, 13, nullptr, 5, 0, nullptr);
  pack_bits(nullptr, 0, nullptr);
  EXPECT_EQ(0, count_set_bits(nullptr, 13, 0));
  EXPECT_FALSE(has_unset_bits(nullptr, 13, 0));
  EXPECT_TRUE(has_only_canonical_bools(nullptr, 0));
}

TEST(Bits, TellsBoolsOtherThanZeroAndOne) {
  for (const int64_t count : {1, 7, 64, 4095, 4096, 4097, 10000}) {
    ExactBytes bytes(count, 1);
    bytes[count / 2] = 0;
    EXPECT_TRUE(has_only_canonical_bools(bytes.data(), count));
    for (const int64_t place : {int64_t{0}, count / 2, count - 1}) {
      for (const int value : {2, 3, 128, 255}) {
        const uint8_t before = bytes[place];
        bytes[place] = static_cast<uint8_t>(value);
        EXPECT_FALSE(has_only_canonical_bools(bytes.data(), count)) << place << " of " << count;
        bytes[place] = before;
      }
    }
  }
}

TEST(Bits, CanonicalizesInPlace) {
  uint8_t bytes[] = {0, 1, 2, 255, 0, 128};
  canonicalize_bools(bytes, 6, bytes);
  const uint8_t expected[] = {0, 1, 1, 1, 0, 1};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(expected[i], bytes[i]);
}

}  // namespace
}  // namespace arrowdl
