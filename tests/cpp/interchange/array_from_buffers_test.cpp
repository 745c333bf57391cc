// Tests arrays made of buffers, and sentinel values that become nulls.
#include "interchange/array_from_buffers.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "compute/pack_bits.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/sample_arrays.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

template <typename T>
DeviceArray numbers_of(const char* dtype, const std::vector<T>& values) {
  return primitive(dtype, values, {static_cast<int64_t>(values.size())}).import();
}

DeviceArray bytes_of(const std::string& bytes) {
  return numbers_of("uint8", std::vector<uint8_t>(bytes.begin(), bytes.end()));
}

TEST(Assemble, SharesEachBuffer) {
  const DeviceArray validity = bytes_of("\x0A");
  const DeviceArray values = numbers_of<int32_t>("int32", {1, 2, 3, 4});
  const DeviceArray array =
      array_from_buffers(make_nested_schema("i", {}), {3, 1, {validity, values}});
  EXPECT_EQ(read_rows(array), (Values{number(2), null(), number(4)}));
  EXPECT_EQ(array.buffer(0), validity.buffer(1));
  EXPECT_EQ(array.buffer(1), values.buffer(1));
  EXPECT_EQ(array.null_count(), 1);
}

TEST(Assemble, TakesBytesForAnyType) {
  const DeviceArray array = array_from_buffers(make_nested_schema("s", {}),
                                               {2, 0, {{}, bytes_of(std::string("\1\0\2\0", 4))}});
  EXPECT_EQ(read_rows(array), (Values{number(1), number(2)}));
}

TEST(Assemble, StartsWhereABufferDoes) {
  const DeviceArray values = numbers_of<int32_t>("int32", {1, 2, 3, 4}).slice(1, 3);
  const DeviceArray array = array_from_buffers(make_nested_schema("i", {}), {2, 1, {{}, values}});
  EXPECT_EQ(read_rows(array), (Values{number(3), number(4)}));
}

TEST(Assemble, ChecksSizes) {
  const DeviceArray values = numbers_of<int32_t>("int32", {1, 2});
  const auto assembled = [&](const char* format, BufferParts parts) {
    return [format, parts = std::move(parts)] {
      array_from_buffers(make_nested_schema(format, {}), parts);
    };
  };
  using Kind = ErrorKind;
  expect_error(Kind::kValue, "has 8 bytes; 3 rows from row 0 on need 12",
               assembled("i", {3, 0, {{}, values}}));
  expect_error(Kind::kValue, "buffer 0", assembled("i", {2, 7, {bytes_of("a"), values}}));
}

TEST(Assemble, ReadsOffsetsWhereTheHostCan) {
  const auto strings = [](std::vector<int32_t> offsets) {
    return array_from_buffers(make_nested_schema("u", {}),
                              {2, 0, {{}, numbers_of("int32", offsets), bytes_of("abc")}});
  };
  EXPECT_EQ(read_rows(strings({0, 1, 3})), (Values{text("a"), text("bc")}));
  for (const std::vector<int32_t>& wrong : {std::vector<int32_t>{0, 1, 4}, {2, 1, 3}, {-1, 1, 3}}) {
    expect_error(ErrorKind::kValue, "", [&] { strings(wrong); });
  }
  expect_error(ErrorKind::kValue, "buffer 1", [&] { strings({0, 1}); });
}

TEST(Assemble, TakesADictionary) {
  const DeviceArray codes = numbers_of<int8_t>("int8", {1, 0});
  const DeviceArray words = numbers_of<int64_t>("int64", {70, 80});
  const DeviceArray array =
      array_from_buffers(make_nested_schema("c", {}), {2, 0, {{}, codes}, words}, true);
  EXPECT_EQ(array.dictionary().buffer(1), words.buffer(1));
  EXPECT_NE(array.export_schema()->flags & ARROW_FLAG_DICTIONARY_ORDERED, 0);
}

TEST(Assemble, RefusesSeveralDevicesAndNulls) {
  const DeviceArray values = numbers_of<int32_t>("int32", {1});
  const DeviceArray on_cuda = primitive<int32_t>("int32", {1}, {1}).import({kDLCUDA, 0});
  expect_error(ErrorKind::kValue, "are on cpu:0 and on cuda:0",
               [&] { array_from_buffers(make_nested_schema("i", {}), {1, 0, {values, on_cuda}}); });
  const DeviceArray nulls = primitive<int32_t>("int32", {1}, {1, "0"}).import();
  expect_error(ErrorKind::kValue, "without nulls",
               [&] { array_from_buffers(make_nested_schema("i", {}), {1, 0, {{}, nulls}}); });
}

template <typename T>
DeviceArray with_nans(const char* dtype, T value, T nan, T other_nan) {
  return nan_to_null(
      numbers_of<T>(dtype, {value, nan, value, other_nan, value, value, value, value, nan}));
}

TEST(NullWhere, NanOfEachWidth) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto nan = static_cast<float>(kNan);
  for (const DeviceArray& array :
       {with_nans<double>("float64", -kInfinity, kNan, -kNan),
        with_nans<float>("float32", static_cast<float>(kInfinity), nan, -nan),
        with_nans<uint16_t>("float16", 0xFC00, 0x7E00, 0xFC01)}) {
    EXPECT_EQ(array.null_count(), 3);
    EXPECT_EQ(array.buffer_as<uint8_t>(0)[0], 0xF5);
    EXPECT_EQ(array.buffer_as<uint8_t>(0)[1], 0);
  }
}

TEST(NullWhere, EqualInAWindowWithNulls) {
  const DeviceArray array = primitive<int16_t>("int16", {9, 7, 8, 7}, {3, "1101", 1}).import();
  const int16_t seven = 7;
  const std::string_view item(reinterpret_cast<const char*>(&seven), sizeof(seven));
  EXPECT_EQ(values_to_null(array, item).null_count(), 3);
  EXPECT_EQ(values_to_null(array.slice(1, 1), item).null_count(), 1);
}

TEST(NullWhere, NothingFoundIsNothingCopied) {
  const DeviceArray array = numbers_of<double>("float64", {1, 2});
  EXPECT_EQ(nan_to_null(array).buffer(1), array.buffer(1));
  EXPECT_EQ(nan_to_null(array).validity(), nullptr);
}

TEST(NullWhere, Refuses) {
  const DeviceArray array = numbers_of<int32_t>("int32", {1});
  expect_error(ErrorKind::kBuffer, "NaN stands for null", [&] { nan_to_null(array); });
  expect_error(ErrorKind::kValue, "2 bytes", [&] { values_to_null(array, "ab"); });
  const DeviceArray on_cuda = primitive<double>("float64", {1}, {1}).import({kDLCUDA, 0});
  expect_error(ErrorKind::kBuffer, "cuda:0", [&] { nan_to_null(on_cuda); });
}

}  // namespace
}  // namespace arrowdl::testing
