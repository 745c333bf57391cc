// Tests making, splitting, padding and measuring lists.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/list_tensors.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

std::vector<NamedSchema> list_types() {
  return {
      {"list", [] { return field("+l", field("i")); }},
      {"large_list", [] { return field("+L", field("u")); }},
      {"map", [] { return map(field("u"), field("i")); }},
      {"list_view", [] { return field("+vl", field("i")); }},
      {"large_list_view", [] { return field("+vL", field("+l", field("b"))); }},
      {"string", [] { return field("u"); }},
      {"large_binary", [] { return field("Z"); }},
      {"string_view", [] { return field("vu"); }},
  };
}

int64_t read_offset(const DeviceArray& offsets, int64_t i) { return read_number(offsets, i); }

/// The rows that `parts` stand for; `is_bytes`: as text.
Values join(const ListParts& parts, bool is_bytes) {
  Values rows;
  for (int64_t i = 0; i + 1 < parts.offsets.length(); ++i) {
    const int64_t start = read_offset(parts.offsets, i);
    Values row = read_rows(parts.values, start, read_offset(parts.offsets, i + 1) - start);
    if (!is_bytes) {
      rows.push_back(items(std::move(row)));
      continue;
    }
    std::string bytes;
    for (const Value& value : row) bytes.push_back(static_cast<char>(value.number));
    rows.push_back(text(bytes));
  }
  return rows;
}

class SplitListTest : public ::testing::TestWithParam<NamedSchema> {};

TEST_P(SplitListTest, NullRowsHaveNoValues) {
  const OwnedSchema schema = GetParam().make();
  const Type type = parse_schema(*schema.get());
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Builder builder(seed);
    Values rows = builder.make_values(type, builder.pick(0, 20));
    const DeviceArray array = builder.import(schema, rows);
    const ListParts parts = split_list(array, true);
    for (Value& row : rows) row.is_null = false;
    ASSERT_EQ(join(parts, type.children.empty()), rows);
    EXPECT_EQ(read_offset(parts.offsets, 0), 0);
    EXPECT_EQ(parts.values.length(), read_offset(parts.offsets, array.length()));
  }
}

TEST_P(SplitListTest, WithoutNullsEveryValueIsThere) {
  const OwnedSchema schema = GetParam().make();
  const Type type = parse_schema(*schema.get());
  for (unsigned seed = 0; seed < 100; ++seed) {
    Builder builder(seed);
    Values rows;
    for (int64_t i = builder.pick(0, 20); i > 0; --i)
      rows.push_back(builder.make_value(type, false));
    ASSERT_EQ(join(split_list(builder.import(schema, rows)), type.children.empty()), rows);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, SplitListTest, ::testing::ValuesIn(list_types()),
                         [](const auto& info) { return info.param.name; });

DeviceArray make_ints(const std::vector<int32_t>& elements) {
  ArrayParts parts;
  parts.length = static_cast<int64_t>(elements.size());
  parts.buffers = {Buffer(), exact(elements)};
  return DeviceArray::import(field("i"), make_array(std::move(parts)));
}

DeviceArray make_longs(const std::vector<int64_t>& elements) {
  ArrayParts parts;
  parts.length = static_cast<int64_t>(elements.size());
  parts.buffers = {Buffer(), exact(elements)};
  return DeviceArray::import(field("l"), make_array(std::move(parts)));
}

DeviceArray make_views(const std::vector<int32_t>& offsets, const std::vector<int32_t>& sizes,
                       int32_t value_count) {
  std::vector<int32_t> values;
  for (int32_t i = 0; i < value_count; ++i) values.push_back(i);
  ArrayParts parts;
  parts.length = static_cast<int64_t>(offsets.size());
  parts.buffers = {Buffer(), exact(offsets), exact(sizes)};
  parts.children.push_back(share_array(make_ints(values)));
  return DeviceArray::import(field("+vl", field("i")), make_array(std::move(parts)));
}

TEST(SplitList, FirstOffsetZeroIsZeroCopy) {
  const DeviceArray lists = make_list(make_ints({1, 2, 3}), make_ints({0, 2, 3}));
  const ListParts parts = split_list(lists.slice(0, 1));
  EXPECT_EQ(parts.offsets.buffer(1), lists.buffer(1));
  EXPECT_EQ(parts.values.buffer(1), lists.child(0).buffer(1));
  EXPECT_EQ(parts.values.length(), 2);
}

TEST(SplitList, LaterWindowsShareTheValues) {
  const DeviceArray lists = make_list(make_ints({1, 2, 3}), make_ints({0, 2, 3}));
  const ListParts parts = split_list(lists.slice(1, 1));
  EXPECT_EQ(read_rows(parts.offsets), numbers({0, 1}));
  EXPECT_EQ(read_rows(parts.values), numbers({3}));
  EXPECT_EQ(parts.values.buffer(1), lists.child(0).buffer(1));
}

TEST(SplitList, ViewsInOrderShareTheValues) {
  const DeviceArray in_order = make_views({1, 3, 3, 4}, {2, 0, 1, 1}, 6);
  EXPECT_EQ(split_list(in_order).values.buffer(1), in_order.child(0).buffer(1));
  EXPECT_EQ(read_rows(split_list(in_order).values), numbers({1, 2, 3, 4}));
  const DeviceArray with_gap = make_views({0, 2}, {1, 1}, 6);
  EXPECT_EQ(read_rows(split_list(with_gap).values), numbers({0, 2}));
  const DeviceArray overlapping = make_views({2, 0, 1}, {3, 2, 2}, 6);
  EXPECT_EQ(read_rows(split_list(overlapping).values), numbers({2, 3, 4, 0, 1, 1, 2}));
  EXPECT_EQ(read_rows(split_list(overlapping).offsets), numbers({0, 3, 5, 7}));
}

TEST(SplitList, ViewsOutsideTheValues) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  // Not structured bindings: lambdas capture them from C++20 on.
  for (const auto& view : {std::pair{0, 7}, std::pair{6, 1}, std::pair{-1, 1}, std::pair{1, -1},
                           std::pair{kMax, kMax}}) {
    expect_error(ErrorKind::kValue, "must lie within the 6 values",
                 [&] { split_list(make_views({view.first}, {view.second}, 6)); });
  }
  EXPECT_EQ(split_list(make_views({6}, {0}, 6)).values.length(), 0);
}

TEST(SplitList, OffsetsThatDescendOrLeaveTheValues) {
  for (const std::vector<int32_t>& offsets :
       {std::vector<int32_t>{0, 2, 1}, std::vector<int32_t>{-1, 0, 1},
        std::vector<int32_t>{0, 1, 4}, std::vector<int32_t>{0, 9, 3}}) {
    ArrayParts parts;
    parts.length = 2;
    parts.buffers = {Buffer(), exact(offsets)};
    parts.children.push_back(share_array(make_ints({1, 2, 3})));
    const DeviceArray bad =
        DeviceArray::import(field("+l", field("i")), make_array(std::move(parts)));
    expect_error(ErrorKind::kValue, "malformed list<int32> array: row", [&] { split_list(bad); });
    expect_error(ErrorKind::kValue, "malformed", [&] { split_list(bad, true); });
  }
}

TEST(SplitList, StringWhoseDataIsMissing) {
  ArrayParts parts;
  parts.length = 1;
  parts.buffers = {Buffer(), exact(std::vector<int32_t>{0, 1}), Buffer()};
  const DeviceArray bad = DeviceArray::import(field("u"), make_array(std::move(parts)));
  expect_error(ErrorKind::kValue, "NULL", [&] { split_list(bad); });
  expect_error(ErrorKind::kValue, "NULL", [&] { concatenate({bad, bad}); });
}

TEST(SplitList, OtherTypesAreRefused) {
  expect_error(ErrorKind::kType, "got int32", [] { split_list(make_ints({1})); });
}

TEST(SplitList, MemoryElsewhere) {
  ArrayParts parts;
  parts.length = 1;
  parts.buffers = {Buffer(), exact(std::vector<int32_t>{0, 1}), exact(std::string("x"))};
  const DeviceArray array =
      DeviceArray::import(field("u"), make_array(std::move(parts)), Device{kDLCUDA, 0});
  expect_error(ErrorKind::kBuffer, "cuda:0", [&] { split_list(array); });
}

TEST(MakeList, CutsTheValues) {
  const DeviceArray lists =
      make_list(make_ints({5, 6, 7, 8}).slice(1, 3), make_longs({9, 1, 1, 3}).slice(1, 3));
  EXPECT_STREQ(lists.type().schema->format, "+L");
  EXPECT_EQ(read_rows(lists), (Values{items({}), items(numbers({7, 8}))}));
  EXPECT_EQ(make_list(make_ints({}), make_ints({0})).length(), 0);
}

TEST(MakeList, OffsetsThatAreNone) {
  const DeviceArray values = make_ints({1, 2});
  expect_error(ErrorKind::kValue, "offset 2 is 1 after 2",
               [&] { make_list(values, make_ints({0, 2, 1})); });
  expect_error(ErrorKind::kValue, "within the 2 values",
               [&] { make_list(values, make_ints({0, 3})); });
  expect_error(ErrorKind::kValue, "offset 0 is -1", [&] { make_list(values, make_ints({-1, 2})); });
  expect_error(ErrorKind::kValue, "n + 1 offsets", [&] { make_list(values, make_ints({})); });
  expect_error(ErrorKind::kType, "int32 or int64, not float32",
               [&] { make_list(values, Builder(1).import(field("f"), numbers({0}))); });
  ArrayParts parts;
  parts.length = 2;
  parts.null_count = -1;
  parts.buffers = {exact_bits({true, false}), exact(std::vector<int32_t>{0, 0})};
  const DeviceArray with_null = DeviceArray::import(field("i"), make_array(std::move(parts)));
  expect_error(ErrorKind::kValue, "must not be null", [&] { make_list(values, with_null); });
}

template <typename T>
std::vector<T> read_tensor(const OwnedTensor& tensor) {
  int64_t size = 1;
  for (int32_t d = 0; d < tensor->ndim; ++d) size *= tensor->shape[d];
  const T* data = static_cast<const T*>(tensor->data);
  return std::vector<T>(data, data + size);
}

std::vector<int64_t> shape_of(const OwnedTensor& tensor) {
  return std::vector<int64_t>(tensor->shape, tensor->shape + tensor->ndim);
}

using Shape = std::vector<int64_t>;

TEST(PadList, ToTheLongestOrTheWidth) {
  const ListParts parts = split_list(make_list(make_ints({1, 2, 3, 4}), make_ints({0, 1, 1, 4})));
  const OwnedTensor longest = pad_list(parts, Nulls::kRaise);
  EXPECT_EQ(shape_of(longest), (Shape{3, 3}));
  EXPECT_EQ(read_tensor<int32_t>(longest), (std::vector<int32_t>{1, 0, 0, 0, 0, 0, 2, 3, 4}));
  EXPECT_NE(longest.flags() & DLPACK_FLAG_BITMASK_IS_COPIED, 0U);
  const OwnedTensor wide = pad_list(parts, Nulls::kRaise, {4});
  EXPECT_EQ(read_tensor<int32_t>(wide), (std::vector<int32_t>{1, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 0}));
  expect_error(ErrorKind::kValue, "longest row has 3 values and the width is 2",
               [&] { pad_list(parts, Nulls::kRaise, {2}); });
}

TEST(PadList, CutsAndFillsToAMultiple) {
  const ListParts parts = split_list(make_list(make_ints({1, 2, 3, 4}), make_ints({0, 1, 1, 4})));
  Padding padding;
  padding.max_length = 2;
  padding.multiple = 4;
  const int32_t element = -100;
  std::memcpy(padding.element.data(), &element, sizeof(element));
  const OwnedTensor padded = pad_list(parts, Nulls::kRaise, padding);
  EXPECT_EQ(shape_of(padded), (Shape{3, 4}));
  EXPECT_EQ(read_tensor<int32_t>(padded),
            (std::vector<int32_t>{1, -100, -100, -100, -100, -100, -100, -100, 2, 3, -100, -100}));
  EXPECT_EQ(read_tensor<int64_t>(list_lengths(parts, 2)), (std::vector<int64_t>{1, 0, 2}));
}

TEST(PadList, NoMultipleWithinInt64) {
  const ListParts parts = split_list(make_list(make_ints({1, 2, 3}), make_ints({0, 3})));
  Padding padding;
  padding.width = std::numeric_limits<int64_t>::max();
  padding.multiple = 2;
  expect_error(ErrorKind::kValue, "no multiple of 2",
               [&] { pad_list(parts, Nulls::kRaise, padding); });
}

TEST(PadList, NothingToPad) {
  const ListParts no_rows = split_list(make_list(make_ints({}), make_ints({0})));
  EXPECT_EQ(shape_of(pad_list(no_rows, Nulls::kRaise)), (Shape{0, 0}));
  const ListParts no_values = split_list(make_list(make_ints({}), make_ints({0, 0, 0})));
  EXPECT_EQ(shape_of(pad_list(no_values, Nulls::kRaise)), (Shape{2, 0}));
  EXPECT_EQ(read_tensor<int32_t>(pad_list(no_values, Nulls::kRaise, {1})),
            (std::vector<int32_t>{0, 0}));
}

TEST(PadList, SizesThatOverflow) {
  const ListParts parts = split_list(make_list(make_ints({}), make_ints({0, 0, 0})));
  expect_error(ErrorKind::kBuffer, "2^63 - 1 bytes",
               [&] { pad_list(parts, Nulls::kRaise, {std::numeric_limits<int64_t>::max() / 2}); });
}

TEST(PadList, InnerDimensionsAndNulls) {
  const OwnedSchema schema = field("+l", field("+w:2", field("i")));
  const Values rows{items({items({number(1), null()})}), items({}),
                    items({items(numbers({2, 3})), items(numbers({4, 5}))})};
  const ListParts parts = split_list(Builder(4).import(schema, rows), true);
  expect_error(ErrorKind::kBuffer, "null", [&] { pad_list(parts, Nulls::kRaise); });
  const OwnedTensor padded = pad_list(parts, Nulls::kFill);
  EXPECT_EQ(shape_of(padded), (Shape{3, 2, 2}));
  EXPECT_EQ(read_tensor<int32_t>(padded),
            (std::vector<int32_t>{1, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 5}));
}

TEST(PadList, BitsBecomeBytes) {
  const OwnedSchema schema = field("+l", field("b"));
  const ListParts parts =
      split_list(Builder(4).import(schema, {items(numbers({1, 0})), items(numbers({1}))}));
  EXPECT_EQ(read_tensor<uint8_t>(pad_list(parts, Nulls::kRaise)),
            (std::vector<uint8_t>{1, 0, 1, 0}));
}

TEST(PadList, StringsAreBytes) {
  const ListParts parts = split_list(Builder(4).import(field("u"), {text("ab"), text("c")}));
  EXPECT_EQ(read_tensor<uint8_t>(pad_list(parts, Nulls::kRaise)),
            (std::vector<uint8_t>{'a', 'b', 'c', 0}));
}

TEST(ListLengths, OfEitherOffsets) {
  const OwnedTensor of_int32 =
      list_lengths(split_list(make_list(make_ints({1, 2}), make_ints({0, 0, 2}))));
  EXPECT_EQ(read_tensor<int64_t>(of_int32), (std::vector<int64_t>{0, 2}));
  const OwnedTensor of_int64 =
      list_lengths(split_list(make_list(make_ints({1, 2}), make_longs({1, 2}))));
  EXPECT_EQ(read_tensor<int64_t>(of_int64), (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace arrowdl::testing
