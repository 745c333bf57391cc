// Tests taking rows of every layout in any order.
#include "compute/take.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/elements.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

DeviceArray take_rows(const std::vector<DeviceArray>& sources,
                      const std::vector<RowIndex>& indices) {
  return DeviceArray::import(sources.front().export_schema(),
                             take(sources, {indices.data(), static_cast<int64_t>(indices.size())}));
}

/// Takes rows of several arrays, some of them more than once, and compares them.
void check_random_rows(const OwnedSchema& schema, unsigned seed, int64_t most_rows) {
  const Type type = parse_schema(*schema.get());
  Builder builder(seed);
  std::vector<DeviceArray> sources;
  std::vector<Values> rows;
  for (int64_t i = builder.pick(1, 4); i > 0; --i) {
    const int64_t length = builder.chance(5) ? 0 : builder.pick(1, most_rows);
    rows.push_back(builder.make_values(type, length));
    sources.push_back(builder.import(schema, rows.back()));
  }
  std::vector<RowIndex> indices;
  Values expected;
  for (int64_t i = builder.pick(0, 4 * most_rows); i > 0; --i) {
    const auto source = static_cast<uint32_t>(builder.pick(0, int64_t(sources.size()) - 1));
    if (rows[source].empty()) continue;
    const auto row = static_cast<uint32_t>(builder.pick(0, int64_t(rows[source].size()) - 1));
    indices.push_back({source, row});
    expected.push_back(rows[source][row]);
  }
  const DeviceArray taken = take_rows(sources, indices);
  sources.clear();
  ASSERT_EQ(read_rows(taken), expected);
  if (type.has_validity() && type.dictionary == nullptr) {
    const auto nulls = std::count_if(expected.begin(), expected.end(),
                                     [](const Value& value) { return value.is_null; });
    ASSERT_EQ(taken.null_count(), nulls);
  }
}

class TakeTest : public ::testing::TestWithParam<NamedSchema> {
 protected:
  void SetUp() override { objects_ = live_objects(); }
  void TearDown() override { EXPECT_EQ(live_objects(), objects_); }

 private:
  int64_t objects_ = 0;
};

TEST_P(TakeTest, AnyRowsOfSeveralArrays) {
  const OwnedSchema schema = GetParam().make();
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    check_random_rows(schema, seed, seed % 10 == 0 ? 25 : 9);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, TakeTest, ::testing::ValuesIn(every_type()),
                         [](const auto& info) { return info.param.name; });

/// Rows of lists of a fixed size are elements up to 64 bytes, and ranges beyond.
TEST(Take, ListsOfEachSize) {
  unsigned seed = 0;
  for (const char* item : {"b", "c", "s", "f", "l", "w:3"}) {
    for (int size = 1; size <= 70; ++size) {
      SCOPED_TRACE(concat(item, " by ", size));
      const std::string list = concat("+w:", size);
      check_random_rows(field(list.c_str(), field(item)), ++seed, 9);
      const OwnedSchema nested = field("+w:2", field(list.c_str(), field(item)));
      check_random_rows(nested, ++seed, 5);
    }
  }
}

TEST(Take, ListsOfOtherRows) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    check_random_rows(field("+w:3", field("u")), seed, 9);
    check_random_rows(field("+w:3", field("+s", field("b"), field("u"), field("l"))), seed, 9);
    check_random_rows(field("+w:3", dictionary("c", field("u"))), seed, 9);
    check_random_rows(field("+l", field("+s", field("b"), field("u"), field("l"))), seed, 9);
    check_random_rows(field("+L", field("+w:3", field("s"))), seed, 9);
    check_random_rows(field("+s", dictionary("s", field("u")), field("Z")), seed, 9);
  }
}

/// Sizes around the steps of the copy, from the ends of buffers of just their size.
TEST(Take, StringsOfEachSize) {
  Values rows;
  std::vector<RowIndex> indices;
  Values expected;
  for (uint32_t i = 0; i < 140; ++i) {
    rows.push_back(text(std::string(i, static_cast<char>('a' + i % 26))));
    indices.insert(indices.begin(), {0, i});
    expected.insert(expected.begin(), rows.back());
  }
  for (const char* format : {"u", "Z"}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(concat(format, " ", seed));
      const DeviceArray array = Builder(seed).import(field(format), rows);
      ASSERT_EQ(read_rows(take_rows({array}, indices)), expected);
    }
  }
}

/// Enough bytes for several threads: none may write where another one does.
TEST(Take, ManyShortStrings) {
  Values rows;
  std::vector<RowIndex> indices;
  Values expected;
  for (uint32_t i = 0; i < 1000; ++i) rows.push_back(text(concat("row ", i * i)));
  for (uint32_t i = 0; i < 200'000; ++i) {
    indices.push_back({0, i * 7919 % 1000});
    expected.push_back(rows[indices.back().row]);
  }
  EXPECT_EQ(read_rows(take_rows({Builder(1).import(field("u"), rows)}, indices)), expected);
}

TEST(Take, ElementsWithoutBytes) {
  const std::vector<uint8_t> source(16, 7);
  const std::vector<uint8_t> expected(16, 1);
  std::vector<uint8_t> target(16, 1);
  const uint32_t rows[] = {2, 0, 1};
  take_elements(source.data() + 8, rows, 3, 0, target.data() + 8);
  EXPECT_EQ(target, expected);
}

TEST(Take, NoRows) {
  for (const NamedSchema& type : every_type()) {
    SCOPED_TRACE(type.name);
    EXPECT_EQ(take_rows({Builder(1).import(type.make(), {})}, {}).length(), 0);
  }
}

/// A string array of rows between `offsets`, over `bytes` bytes.
DeviceArray make_strings(const std::vector<int32_t>& offsets, std::size_t bytes) {
  ArrayParts parts;
  parts.length = static_cast<int64_t>(offsets.size()) - 1;
  parts.buffers = {Buffer(), exact(offsets), exact(std::string(bytes, 'x'))};
  return DeviceArray::import(field("u"), make_array(std::move(parts)));
}

TEST(Take, MoreBytesThanOffsetsCount) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const DeviceArray array = make_strings({0, 1 << 20}, std::size_t{1} << 20);
  expect_error(ErrorKind::kBuffer, "hold 2147483648 values together",
               [&] { take_rows({array}, std::vector<RowIndex>(2048, RowIndex{0, 0})); });
  const DeviceArray most = make_strings({0, 1, kMost}, 1);  // is not read: two of them do not fit
  expect_error(ErrorKind::kBuffer, "cast to large_string first",
               [&] { take_rows({most}, {{0, 1}, {0, 1}}); });
}

TEST(Take, MoreBytesThanAnArrayHas) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ArrayParts parts;
  parts.length = 1;
  parts.buffers = {Buffer(), exact(std::vector<int64_t>{0, kMost}), exact(std::string("x"))};
  const DeviceArray array = DeviceArray::import(field("U"), make_array(std::move(parts)));
  expect_error(ErrorKind::kBuffer, "2^63 - 1", [&] { take_rows({array}, {{0, 0}, {0, 0}}); });
}

/// Enough values of several widths for several threads, and rows longer than a chunk.
TEST(Take, ManyListsOfStructs) {
  const OwnedSchema schema =
      field("+l", field("+s", field("c"), field("l"), field("+w:3", field("s"))));
  const Type type = parse_schema(*schema.get());
  Builder builder(3);
  Values rows = builder.make_values(type, 300);
  std::vector<RowIndex> indices;
  Values expected;
  for (uint32_t i = 0; i < 60'000; ++i) {
    indices.push_back({0, i * 7919 % 300});
    expected.push_back(rows[indices.back().row]);
  }
  EXPECT_EQ(read_rows(take_rows({builder.import(schema, rows)}, indices)), expected);
}

TEST(Take, OffsetsThatDescend) {
  const DeviceArray bad = make_strings({0, 2, 1, 3}, 3);
  EXPECT_EQ(read_rows(take_rows({bad}, {{0, 2}, {0, 0}})), (Values{text("xx"), text("xx")}));
  expect_error(ErrorKind::kValue, "row 1 has the offsets 2 and 1",
               [&] { take_rows({bad}, {{0, 0}, {0, 1}}); });
  const DeviceArray negative = make_strings({-1, 1}, 3);
  expect_error(ErrorKind::kValue, "row 0 has the offsets -1 and 1",
               [&] { take_rows({negative}, {{0, 0}}); });
}

TEST(Take, OffsetsBeyondTheValues) {
  ArrayParts parts;
  parts.length = 2;
  parts.buffers = {Buffer(), exact(std::vector<int32_t>{0, 1, 3})};
  const OwnedSchema schema = field("+l", field("i"));
  const Type type = parse_schema(*schema.get());
  parts.children.push_back(Builder(1).build(type.children[0], numbers({1, 2})));
  const DeviceArray bad = DeviceArray::import(copy(schema), make_array(std::move(parts)));
  EXPECT_EQ(take_rows({bad}, {{0, 0}}).length(), 1);
  expect_error(ErrorKind::kValue, "within the 2 values", [&] { take_rows({bad}, {{0, 1}}); });
}

TEST(Take, DataThatIsMissing) {
  ArrayParts parts;
  parts.length = 1;
  parts.buffers = {Buffer(), exact(std::vector<int32_t>{0, 3}), Buffer()};
  const DeviceArray bad = DeviceArray::import(field("u"), make_array(std::move(parts)));
  expect_error(ErrorKind::kValue, "its data is NULL", [&] { take_rows({bad}, {{0, 0}}); });
}

TEST(Take, OneDictionaryIsShared) {
  const OwnedSchema schema = dictionary("c", field("u"));
  const DeviceArray array =
      Builder(5).import(schema, {text("a"), text("b"), text("a"), text("c"), text("b")});
  const DeviceArray taken =
      take_rows({array.slice(3, 2), array.slice(0, 3)}, {{0, 1}, {1, 0}, {0, 0}});
  EXPECT_EQ(read_rows(taken), (Values{text("b"), text("a"), text("c")}));
  EXPECT_EQ(taken.dictionary().buffer(1), array.dictionary().buffer(1));
}

}  // namespace
}  // namespace arrowdl::testing
