// Tests casts of numbers to another dtype.
#include "cast/cast_dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cast/convert_number.hpp"
#include "support/sample_arrays.hpp"

namespace arrowdl {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests

DeviceArray cast(const DeviceArray& array, const char* dtype,
                 CastWhich which = CastWhich::kNumbers) {
  return cast_dtype(array, *find_dtype(dtype), which);
}

template <typename T>
std::vector<T> values_of(const DeviceArray& array) {
  const T* first = array.buffer_as<T>(1) + array.offset();
  return std::vector<T>(first, first + array.length());
}

template <typename T>
void expect_unfit(const char* from, T value, const char* to, const std::string& reason) {
  try {
    cast(primitive<T>(from, {T{0}, value}, {2}).import(), to);
    FAIL() << from << " to " << to;
  } catch (const UnfitValue& error) {
    EXPECT_EQ(1, error.row());
    EXPECT_NE(std::string::npos, std::string(error.what()).find(reason)) << error.what();
  }
}

TEST(CastDtype, RoundsToTheNearestFloat) {
  const auto longs = primitive<int64_t>("int64", {16777217, 16777219, -3}, {3}).import();
  EXPECT_EQ((std::vector<float>{16777216.F, 16777220.F, -3.F}),
            values_of<float>(cast(longs, "float32")));
  const auto doubles = primitive<double>("float64", {0.1, -1e-300, HUGE_VAL}, {3}).import();
  EXPECT_EQ((std::vector<float>{0.1F, -0.F, HUGE_VALF}),
            values_of<float>(cast(doubles, "float32")));
}

TEST(CastDtype, RoundsOnceToShortFloats) {
  // The nearest float32 of each is a tie of the shorter type, which would round to even.
  const double above_half_tie = 1 + 0x1p-11 + 0x1p-40;
  const double above_bfloat_tie = 1 + 0x1p-8 + 0x1p-40;
  const auto doubles =
      primitive<double>("float64", {above_half_tie, above_bfloat_tie}, {2}).import();
  EXPECT_EQ(0x3C01, values_of<uint16_t>(cast(doubles, "float16"))[0]);
  EXPECT_EQ(0x3F81, values_of<uint16_t>(cast(doubles, "bfloat16"))[1]);
  const int64_t above_tie = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;
  const auto longs = primitive<int64_t>("int64", {above_tie}, {1}).import();
  EXPECT_EQ(0x5E81, values_of<uint16_t>(cast(longs, "bfloat16"))[0]);
}

TEST(CastDtype, EveryFloat16ComesBack) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto value = static_cast<float>(Half{static_cast<uint16_t>(bits)});
    if (std::isnan(value)) continue;
    const int exponent = static_cast<int>((bits >> 10) & 0x1F);
    const int mantissa = static_cast<int>(bits & 0x3FF);
    const double magnitude = exponent == 31  ? HUGE_VAL
                             : exponent == 0 ? std::ldexp(mantissa, -24)
                                             : std::ldexp(mantissa + 1024, exponent - 25);
    ASSERT_EQ((bits & 0x8000) != 0 ? -magnitude : magnitude, value) << bits;
    ASSERT_EQ(bits, round_to_half(value).bits);
  }
}

TEST(CastDtype, RefusesWhatDoesNotFit) {
  expect_unfit<int64_t>("int64", 128, "int8", "128 is beyond the range of int8");
  expect_unfit<int64_t>("int64", -1, "uint64", "-1 is beyond the range of uint64");
  expect_unfit<uint64_t>("uint64", uint64_t{1} << 63, "int64", "beyond the range of int64");
  expect_unfit<int32_t>("int32", 65520, "float16", "beyond the range of float16");
  expect_unfit<double>("float64", 1e300, "float32", "1.0000000000000001e+300 is beyond");
  expect_unfit<double>("float64", -1e300, "bfloat16", "beyond the range of bfloat16");
  expect_unfit<double>("float64", 0.5, "int64", "0.5 is not a whole number");
  expect_unfit<double>("float64", std::nan(""), "int32", "nan is not in int32");
  expect_unfit<double>("float64", 0x1p63, "int64", "beyond the range of int64");
  expect_unfit<double>("float64", -1, "uint8", "-1 is beyond the range of uint8");
}

TEST(CastDtype, TheLimitsFit) {
  const auto doubles = primitive<double>("float64", {-0x1p63, 0x1p63 - 1024}, {2}).import();
  EXPECT_EQ((std::vector<int64_t>{std::numeric_limits<int64_t>::min(), 0x7FFFFFFFFFFFFC00}),
            values_of<int64_t>(cast(doubles, "int64")));
  const auto ints = primitive<int32_t>("int32", {65519, -128, 127}, {3}).import();
  EXPECT_EQ(0x7BFF, values_of<uint16_t>(cast(ints, "float16"))[0]);
}

TEST(CastDtype, ValuesUnderNullsAreNotChecked) {
  const auto longs = primitive<int64_t>("int64", {9, 300, 5, 7}, {3, "1011", 1}).import();
  const DeviceArray made = cast(longs, "int8");
  EXPECT_EQ(1, made.null_count());
  EXPECT_EQ(5, values_of<int8_t>(made)[1]);
}

TEST(CastDtype, FixedSizeListsKeepTheirShape) {
  std::vector<Sample> children;
  children.push_back(primitive<double>("float64", {0, 1, 2, 3, 4, 1e39}, {6}));
  const auto lists = nest("+w:2", std::move(children), {2, "110", 0}).import();
  const DeviceArray made = cast(lists, "float32");
  EXPECT_EQ("fixed_size_list<float32>[2]", to_string(made.type()));
  EXPECT_EQ((std::vector<float>{0, 1, 2, 3}), values_of<float>(made.child(0)));

  std::vector<Sample> others;
  others.push_back(primitive<double>("float64", {0, 1, 2, 3, 4, 1e39}, {6}));
  const auto whole = nest("+w:2", std::move(others), {3}).import();
  try {
    cast(whole, "float32");
    FAIL();
  } catch (const ExplainedError& error) {
    EXPECT_EQ(2, error.row());
  }
}

TEST(CastDtype, BoolsAreCastWhereTheyAreAskedFor) {
  const auto bools = boolean("0110", {3, "", 1}).import();
  EXPECT_EQ(bools.storage(), cast(bools, "float32").storage());
  EXPECT_EQ((std::vector<float>{1, 1, 0}),
            values_of<float>(cast(bools, "float32", CastWhich::kAll)));
}

TEST(CastDtype, TheSameDtypeIsTheSameArray) {
  const auto floats = primitive<float>("float32", {1, 2}, {2}).import();
  EXPECT_EQ(floats.storage(), cast(floats, "float32").storage());
}

TEST(CastDtype, RefusesOtherTypesThatAreNamed) {
  const auto times =
      sample(make_nested_schema("tsu:", {}), {1}, {Buffer(), share<int64_t>({1})}).import();
  EXPECT_EQ(times.storage(), cast(times, "float32").storage());
  EXPECT_THROW(cast(times, "float32", CastWhich::kAll), Error);
}

}  // namespace
}  // namespace arrowdl
