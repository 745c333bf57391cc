// Tests copies of elements with nulls and bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "arrowdl/error.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "convert/array_as_tensor.hpp"
#include "support/expect_error.hpp"
#include "support/sample_arrays.hpp"

namespace arrowdl {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests

using Bytes = std::vector<uint8_t>;
using Floats = std::vector<float>;

std::string describe(const Bytes& mask) {
  std::string text;
  for (const uint8_t byte : mask) text += byte <= 1 ? static_cast<char>('0' + byte) : '?';
  return text;
}

std::string mask_of(const DeviceArray& array) {
  return describe(elements<uint8_t>(to_mask(array)));
}

OwnedTensor copy(const DeviceArray& array, Nulls nulls) {
  return copy_elements(view_as_tensor(array), nulls);
}

/// FixedSizeList<float32>[2] of 5 rows: nulls in the lists and in the values, an offset in both.
DeviceArray pairs() {
  Sample values =
      primitive<float>("float32", {9, 9, 9, 0, 1, 2, 3, 4, 5, 6, 7}, {8, "11111111101", 3}, "item");
  return nest("+w:2", samples(std::move(values)), {3, "1101", 1}).import();
}

TEST(ToMask, FoldsEveryLevelWithItsOwnOffset) {
  // Lists 1 to 3 (the second one null) over the values at 5 to 10 of the buffer (9 is null).
  EXPECT_EQ("110001", mask_of(pairs()));
  EXPECT_EQ((std::vector<int64_t>{3, 2}), shape(to_mask(pairs())));
  const std::string rows = describe(elements<uint8_t>(to_row_mask(pairs())));
  EXPECT_EQ("101", rows);
}

TEST(ToMask, SpreadsRowsOverInnerElements) {
  // Lists: valid, null, valid. Values at buffer position 7 (row 0 of the window, element 2 - 0).
  EXPECT_EQ(
      "11"
      "00"
      "11",
      mask_of(nest("+w:2", samples(primitive<float>("float32", Floats(6), {6}, "item")), {3, "101"})
                  .import()));
}

TEST(ToMask, IsTrueWithoutBitmaps) {
  EXPECT_EQ("1111", mask_of(primitive<float>("float32", Floats(4), {4}).import()));
  EXPECT_EQ("", mask_of(primitive<float>("float32", {}, {0, "1", 0}).import()));
}

TEST(ToMask, SpreadsOverTheBytesOfFixedSizeBinary) {
  Sample bytes = sample(make_nested_schema("w:3", {}), {2, "01"}, {bits("01"), share(Bytes(6))});
  EXPECT_EQ("000111", mask_of(std::move(bytes).import()));
}

TEST(ToMask, AgreesWithANaiveWalkForEveryOffset) {
  for (int64_t offset = 0; offset < 18; ++offset) {
    for (int64_t length = 0; length < 70; ++length) {
      std::string outer;
      std::string inner;
      for (int64_t i = 0; i < offset + length; ++i) outer += (i * 7 + length) % 3 == 0 ? '0' : '1';
      for (int64_t i = 0; i < (offset + length) * 3; ++i) inner += (i * 5) % 7 == 0 ? '0' : '1';
      const Floats values(inner.size());
      Sample child = primitive<float>("float32", values, {(offset + length) * 3, inner}, "item");
      Sample list = nest("+w:3", samples(std::move(child)), {length, outer, offset});
      std::string expected;
      for (int64_t i = offset * 3; i < (offset + length) * 3; ++i) {
        const bool valid = outer[static_cast<std::size_t>(i / 3)] == '1' &&
                           inner[static_cast<std::size_t>(i)] == '1';
        expected += valid ? '1' : '0';
      }
      ASSERT_EQ(expected, mask_of(std::move(list).import())) << length << " at " << offset;
    }
  }
}

TEST(ToRowMask, ReadsAnyType) {
  const auto rows = [](Sample sample) {
    return describe(elements<uint8_t>(to_row_mask(std::move(sample).import())));
  };
  EXPECT_EQ("000", rows(sample(make_nested_schema("n", {}), {3}, {})));
  EXPECT_EQ("10", rows(nest("+s", {}, {2, "0010", 2})));
  EXPECT_EQ("11", rows(nest("+s", {}, {2})));
}

TEST(ReadAsTensor, RefusesRowsThatCannotBeCounted) {
  // These elements have no memory, and the structs are consistent.
  for (const char* innermost : {"+w:0", "+w:2147483647"}) {
    Sample array = primitive<float>("float32", {}, {0}, "item");
    for (const char* format : {innermost, "+w:2147483647", "+w:2147483647", "+w:2147483647"}) {
      array = nest(format, samples(std::move(array)), {0});
    }
    const DeviceArray imported = std::move(array).import();
    EXPECT_THROW(view_as_tensor(imported), Error);
  }
}

TEST(CopyElements, UnpacksBitsOfFixedSizeLists) {
  Sample values = boolean("0000011010", {10}, "item");
  const DeviceArray array = nest("+w:2", samples(std::move(values)), {3, "", 2}).import();
  EXPECT_EQ((Bytes{0, 1, 1, 0, 1, 0}), elements<uint8_t>(copy(array, Nulls::kRaise)));
}

TEST(CopyElements, MakesBool8CanonicalAndFillsFalse) {
  const DeviceArray array = primitive<uint8_t>("bool", {7, 2, 0, 255, 1}, {4, "11110", 1}).import();
  EXPECT_EQ((Bytes{1, 0, 1, 0}), elements<uint8_t>(copy(array, Nulls::kFill)));
}

TEST(CopyElements, PutsZeroOrNanOrNothing) {
  const DeviceArray array = primitive<float>("float32", {1, 2, 3}, {3, "101"}).import();
  EXPECT_EQ((Floats{1, 0, 3}), elements<float>(copy(array, Nulls::kFill)));
  EXPECT_EQ((Floats{1, 2, 3}), elements<float>(copy(array, Nulls::kKeep)));
  EXPECT_TRUE(std::isnan(elements<float>(copy(array, Nulls::kNan))[1]));
  EXPECT_EQ(3, elements<float>(copy(array, Nulls::kNan))[2]);
}

TEST(CopyElements, SaysThatItCopied) {
  const OwnedTensor tensor = copy(primitive<float>("float32", {1}, {1}).import(), Nulls::kKeep);
  EXPECT_EQ(uint64_t{DLPACK_FLAG_BITMASK_IS_COPIED}, tensor.flags());
  EXPECT_EQ(kDLCPU, tensor->device.device_type);
}

template <typename Part>
void expect_nan_bits(const char* dtype, uint64_t expected, std::size_t parts = 1) {
  const std::vector<Part> values(2 * parts, Part{1});
  Sample array = primitive<Part>("int8", values, {2, "10"});
  if (parts == 2) {
    const char* part = sizeof(Part) == 4 ? "float32" : "float64";
    std::vector<OwnedArray> children;
    std::vector<OwnedSchema> schemas;
    children.push_back(std::move(primitive<Part>(part, values, {4}).array));
    array = sample(make_schema(*find_dtype(dtype)), {2, "10"}, {bits("10")}, std::move(children));
  } else {
    array.schema = make_schema(*find_dtype(dtype));
  }
  const OwnedTensor tensor = copy(std::move(array).import(), Nulls::kNan);
  std::vector<Part> found(2 * parts);
  std::memcpy(found.data(), tensor->data, found.size() * sizeof(Part));
  for (std::size_t i = 0; i < parts; ++i) {
    EXPECT_EQ(Part{1}, found[i]) << dtype;
    EXPECT_EQ(expected, found[parts + i]) << dtype;
  }
}

TEST(CopyElements, KnowsTheNanOfEveryFloatingType) {
  expect_nan_bits<uint16_t>("float16", 0x7E00);
  expect_nan_bits<uint32_t>("float32", 0x7FC00000);
  expect_nan_bits<uint64_t>("float64", 0x7FF8000000000000);
  expect_nan_bits<uint16_t>("bfloat16", 0x7FC0);
  expect_nan_bits<uint32_t>("complex64", 0x7FC00000, 2);
  expect_nan_bits<uint64_t>("complex128", 0x7FF8000000000000, 2);
  expect_nan_bits<uint8_t>("float8_e3m4", 0x78);
  expect_nan_bits<uint8_t>("float8_e4m3", 0x7C);
  expect_nan_bits<uint8_t>("float8_e4m3b11fnuz", 0x80);
  expect_nan_bits<uint8_t>("float8_e4m3fn", 0x7F);
  expect_nan_bits<uint8_t>("float8_e4m3fnuz", 0x80);
  expect_nan_bits<uint8_t>("float8_e5m2", 0x7E);
  expect_nan_bits<uint8_t>("float8_e5m2fnuz", 0x80);
  expect_nan_bits<uint8_t>("float8_e8m0fnu", 0xFF);
}

/// Random values with different patterns of nulls, in buffers of exactly their size.
template <typename T>
void expect_substitutes(const char* dtype, Nulls nulls, T expected) {
  std::mt19937_64 random(sizeof(T));
  for (int64_t offset = 0; offset < 10; ++offset) {
    for (const int64_t count : {1, 7, 8, 9, 63, 64, 65, 128, 130, 200}) {
      std::vector<T> values;
      std::string valid;
      for (int64_t i = 0; i < offset + count; ++i) {
        values.push_back(static_cast<T>(random()));
        valid += random() % 3 == 0 ? '0' : '1';
      }
      valid[static_cast<std::size_t>(offset)] = '0';
      const DeviceArray array = primitive<T>(dtype, values, {count, valid, offset}).import();
      const OwnedTensor tensor = copy(array, nulls);
      for (int64_t i = 0; i < count; ++i) {
        T found;
        std::memcpy(&found, static_cast<const T*>(tensor->data) + i, sizeof(T));
        const auto at = static_cast<std::size_t>(offset + i);
        ASSERT_EQ(valid[at] == '1' ? values[at] : expected, found)
            << dtype << ", row " << i << " of " << count << " at " << offset;
      }
    }
  }
}

TEST(CopyElements, SubstitutesTheNullsOfAnyWindow) {
  expect_substitutes<uint8_t>("int8", Nulls::kFill, 0);
  expect_substitutes<uint16_t>("int16", Nulls::kFill, 0);
  expect_substitutes<uint32_t>("int32", Nulls::kFill, 0);
  expect_substitutes<uint64_t>("int64", Nulls::kFill, 0);
  expect_substitutes<uint8_t>("float8_e4m3fn", Nulls::kNan, 0x7F);
  expect_substitutes<uint16_t>("float16", Nulls::kNan, 0x7E00);
  expect_substitutes<uint32_t>("float32", Nulls::kNan, 0x7FC00000);
  expect_substitutes<uint64_t>("float64", Nulls::kNan, 0x7FF8000000000000);
}

TEST(CopyElements, SubstitutesANumberThatTheTypeHolds) {
  expect_substitutes<uint8_t>("int8", Nulls(Number(int64_t{-1})), 0xFF);
  expect_substitutes<uint16_t>("float16", Nulls(Number(1.0)), 0x3C00);
  expect_substitutes<uint32_t>("float32", Nulls(Number(0.1)), 0x3DCCCCCD);
  expect_substitutes<uint64_t>("uint64", Nulls(Number(UINT64_MAX)), UINT64_MAX);
  const DeviceArray array = primitive<int8_t>("int8", {1, 2}, {2, "10"}).import();
  for (const Number& number : {Number(int64_t{128}), Number(0.5), Number(UINT64_MAX), Number()}) {
    expect_error(ErrorKind::kValue, "is not a value of int8", [&] { copy(array, Nulls(number)); });
  }
  EXPECT_EQ((Bytes{1, 0}), elements<uint8_t>(copy(array, Nulls(Number(int64_t{0})))));
}

TEST(CopyElements, FillsTheNullsOfEveryLevel) {
  EXPECT_EQ((Floats{2, 3, 0, 0, 0, 7}), elements<float>(copy(pairs(), Nulls::kFill)));
}

TEST(CopyElements, FillsRowsOfManyItems) {
  const Bytes values = {1, 2, 3, 4, 5, 6, 7, 8};
  const DeviceArray rows =
      sample(make_nested_schema("w:2", {}), {3, "1101", 1}, {bits("1101"), share(values)}).import();
  EXPECT_EQ((Bytes{3, 4, 0, 0, 7, 8}), elements<uint8_t>(copy(rows, Nulls::kFill)));
}

TEST(CopyElements, RefusesValuesThatATypeLacks) {
  EXPECT_THROW(copy(primitive<int32_t>("int32", {1, 2}, {2, "10"}).import(), Nulls::kNan), Error);
  EXPECT_NO_THROW(copy(primitive<int32_t>("int32", {1, 2}, {2, "11"}).import(), Nulls::kNan));
  EXPECT_THROW(copy(primitive<uint8_t>("float8_e8m0fnu", {1, 2}, {2, "10"}).import(), Nulls::kFill),
               Error);
}

TEST(CopyElements, RefusesMemoryThatTheHostCannotRead) {
  const DeviceArray array = primitive<float>("float32", {1}, {1}).import(Device{kDLCUDA, 0});
  EXPECT_THROW(copy(array, Nulls::kKeep), Error);
  EXPECT_THROW(to_mask(array), Error);
}

}  // namespace
}  // namespace arrowdl
