// Tests matrices of the fields of a struct.
#include <gtest/gtest.h>

#include <cmath>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/sample_arrays.hpp"

namespace arrowdl {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests

using Floats = std::vector<float>;

void expect_error(const DeviceArray& array, Nulls nulls, std::vector<std::string> words) {
  try {
    stack_fields(array, nulls);
    FAIL() << words[0];
  } catch (const Error& error) {
    EXPECT_EQ(ErrorKind::kBuffer, error.kind()) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string::npos, std::string(error.what()).find(word)) << error.what();
    }
  }
}

template <typename T>
void expect_interleaved(const char* dtype, int64_t rows, int64_t columns) {
  std::vector<Sample> fields;
  const int64_t offset = 3;
  for (int64_t c = 0; c < columns; ++c) {
    std::vector<T> values;
    for (int64_t r = 0; r < rows + offset; ++r) values.push_back(static_cast<T>(r * 31 + c * 7));
    fields.push_back(primitive<T>(dtype, values, {rows + offset}));
  }
  const OwnedTensor matrix =
      stack_fields(nest("+s", std::move(fields), {rows, "", offset}).import(), Nulls::kRaise);
  ASSERT_EQ((std::vector<int64_t>{rows, columns}), shape(matrix));
  const std::vector<T> found = elements<T>(matrix);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      ASSERT_EQ(static_cast<T>((r + offset) * 31 + c * 7),
                found[static_cast<std::size_t>(r * columns + c)]);
    }
  }
}

TEST(StackFields, TimesHaveOneUnit) {
  const auto time = [](const char* format, const char* name) {
    return sample(make_nested_schema(format, {}, name), {1},
                  {Buffer(), share(std::vector<int64_t>{1})});
  };
  const auto stack = [&](const char* first, const char* second) {
    return nest("+s", samples(time(first, "a"), time(second, "b")), {1}).import();
  };
  expect_error(stack("tsu:", "tsn:"), Nulls::kRaise, {"one unit", "\"b\" is timestamp[ns]"});
  expect_error(stack("tDs", "tsm:UTC"), Nulls::kRaise, {"one unit", "\"a\" is duration[s]"});
  for (const char* second : {"tsu:UTC", "tDu", "ttu", "l"}) {
    EXPECT_EQ((std::vector<int64_t>{1, 2}),
              shape(stack_fields(stack("tsu:", second), Nulls::kRaise)));
  }
}

TEST(StackFields, InterleavesAnyNumberOfColumnsOfAnySize) {
  for (const int64_t columns : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 100}) {
    for (const int64_t rows : {0, 1, 2, 15, 16, 17, 1000}) {
      expect_interleaved<uint8_t>("uint8", rows, columns);
      expect_interleaved<int16_t>("int16", rows, columns);
      expect_interleaved<float>("float32", rows, columns);
      expect_interleaved<double>("float64", rows, columns);
    }
  }
  expect_interleaved<float>("float32", 3, 10000);
}

TEST(StackFields, TakesInnerDimensionsAsColumns) {
  Sample pairs = nest("+w:2", samples(primitive<float>("float32", {1, 2, 3, 4}, {4})), {2});
  Sample none = nest("+w:0", samples(primitive<float>("float32", {}, {0})), {2});
  Sample one = primitive<float>("float32", {5, 6}, {2});
  const OwnedTensor matrix = stack_fields(
      nest("+s", samples(std::move(pairs), std::move(none), std::move(one)), {2}).import(),
      Nulls::kRaise);
  EXPECT_EQ((Floats{1, 2, 5, 3, 4, 6}), elements<float>(matrix));
}

TEST(StackFields, WritesPermutedTensorsInLogicalOrder) {
  TensorMetadata metadata;
  metadata.shape = {2, 3};
  metadata.permutation = {1, 0};
  std::vector<OwnedArray> children;
  children.push_back(std::move(primitive<float>("float32", {0, 1, 2, 3, 4, 5}, {6}).array));
  Sample tensor =
      sample(make_fixed_shape_tensor_schema(make_schema(*find_dtype("float32"), "item"), metadata),
             {1}, {Buffer()}, std::move(children));
  const OwnedTensor matrix =
      stack_fields(nest("+s", samples(std::move(tensor)), {1}).import(), Nulls::kRaise);
  EXPECT_EQ((Floats{0, 3, 1, 4, 2, 5}), elements<float>(matrix));
}

TEST(StackFields, UnpacksBitsBesideBool8) {
  Sample packed = boolean("0110", {3, "", 1});
  Sample bytes = primitive<uint8_t>("bool", {0, 2, 255}, {3});
  const OwnedTensor matrix = stack_fields(
      nest("+s", samples(std::move(packed), std::move(bytes)), {3}).import(), Nulls::kRaise);
  EXPECT_EQ((std::vector<uint8_t>{1, 0, 1, 1, 0, 1}), elements<uint8_t>(matrix));
}

DeviceArray with_nulls() {
  Sample a = primitive<float>("float32", {1, 2, 3}, {3}, "a");
  Sample b = primitive<float>("float32", {4, 5, 6}, {3, "011"}, "b");
  return nest("+s", samples(std::move(a), std::move(b)), {3, "110"}).import();
}

TEST(StackFields, ReplacesNullsOfFieldsAndOfTheStruct) {
  EXPECT_EQ((Floats{1, 0, 2, 5, 0, 0}), elements<float>(stack_fields(with_nulls(), Nulls::kFill)));
  EXPECT_EQ((Floats{1, 4, 2, 5, 3, 6}), elements<float>(stack_fields(with_nulls(), Nulls::kKeep)));
  const Floats found = elements<float>(stack_fields(with_nulls(), Nulls::kNan));
  EXPECT_TRUE(std::isnan(found[1]) && std::isnan(found[4]) && std::isnan(found[5]));
  EXPECT_EQ(5, found[3]);
}

TEST(StackFields, NamesTheFieldThatIsWrong) {
  expect_error(with_nulls(), Nulls::kRaise, {"\"a\"", "nulls"});
  Sample a = primitive<float>("float32", {1}, {1}, "a");
  Sample b = primitive<double>("float64", {1}, {1}, "b");
  expect_error(nest("+s", samples(std::move(a), std::move(b)), {1}).import(), Nulls::kRaise,
               {"\"a\"", "\"b\"", "float32", "float64", "cast"});
  Sample unnamed = nest("+s", {}, {1});
  expect_error(nest("+s", samples(std::move(unnamed)), {1}).import(), Nulls::kRaise, {"field 0"});
  Sample integers = primitive<int32_t>("int32", {1}, {1, "0"}, "c");
  expect_error(nest("+s", samples(std::move(integers)), {1}).import(), Nulls::kNan,
               {"\"c\"", "int32"});
}

TEST(StackFields, RefusesWhatHasNoColumns) {
  expect_error(nest("+s", {}, {3}).import(), Nulls::kRaise, {"no column"});
  expect_error(primitive<float>("float32", {1}, {1}).import(), Nulls::kRaise, {"struct"});
}

TEST(StackFields, EachFieldHasItsPolicy) {
  std::vector<Sample> fields;
  fields.push_back(primitive<float>("float32", {1, 2}, {2, "01"}, "a"));
  fields.push_back(primitive<float>("float32", {3, 4}, {2, "10"}, "b"));
  const DeviceArray array = nest("+s", std::move(fields), {2}).import();
  const Floats found = elements<float>(stack_fields(array, {Nulls::kFill, Nulls::kNan}));
  EXPECT_EQ((Floats{0, 3, 2}), Floats(found.begin(), found.begin() + 3));
  EXPECT_TRUE(std::isnan(found[3]));
}

}  // namespace
}  // namespace arrowdl
