// Tests rows that are taken by their numbers, of every layout.
#include "compute/chunked_rows.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

/// Arrays with gaps between their numbers, and the row of each number.
struct Numbered {
  std::vector<DeviceArray> arrays;
  std::vector<int64_t> starts;
  std::vector<int64_t> numbers;
  Values rows;

  void append(DeviceArray array, const Values& values, int64_t start) {
    starts.push_back(start);
    for (std::size_t i = 0; i < values.size(); ++i) {
      numbers.push_back(start + static_cast<int64_t>(i));
      rows.push_back(values[i]);
    }
    arrays.push_back(std::move(array));
  }
  ChunkedRows number() const {
    return {share_schema(arrays.front().export_schema()), arrays, starts};
  }
};

RowNumbers view(const std::vector<int64_t>& numbers) {
  return {numbers.data(), static_cast<int64_t>(numbers.size())};
}

class ChunkedRowsTest : public ::testing::TestWithParam<NamedSchema> {};

TEST_P(ChunkedRowsTest, RowsInAnyOrder) {
  const OwnedSchema schema = GetParam().make();
  const Type type = parse_schema(*schema.get());
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Builder builder(seed);
    Numbered given;
    int64_t start = builder.pick(0, 5);
    for (int64_t i = builder.pick(1, seed % 3 == 0 ? 30 : 3); i > 0; --i) {
      const Values rows = builder.make_values(type, builder.chance(5) ? 0 : builder.pick(0, 9));
      given.append(builder.import(schema, rows), rows, start);
      start += static_cast<int64_t>(rows.size()) + (builder.chance(3) ? builder.pick(0, 9) : 0);
    }
    const ChunkedRows rows = given.number();
    std::vector<int64_t> chosen;
    Values expected;
    for (int64_t i = given.rows.empty() ? 0 : builder.pick(0, 12); i > 0; --i) {
      const auto at =
          static_cast<std::size_t>(builder.pick(0, static_cast<int64_t>(given.rows.size()) - 1));
      chosen.push_back(given.numbers[at]);
      expected.push_back(given.rows[at]);
    }
    given.arrays.clear();
    ASSERT_EQ(read_rows(rows.take(view(chosen)).rows), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, ChunkedRowsTest, ::testing::ValuesIn(every_type()),
                         [](const auto& info) { return info.param.name; });

Numbered make_numbered(const std::vector<std::vector<int64_t>>& chunks, int64_t gap = 0) {
  const OwnedSchema schema = field("l");
  Numbered made;
  int64_t start = 0;
  for (const auto& chunk : chunks) {
    Values rows;
    for (const int64_t n : chunk) rows.push_back(number(n));
    made.append(Builder(1).import(schema, rows), rows, start);
    start += static_cast<int64_t>(chunk.size()) + gap;
  }
  return made;
}

TEST(ChunkedRows, ConsecutiveRowsOfOneArrayAreAWindow) {
  const Numbered given = make_numbered({{1, 2, 3}, {4, 5}});
  const ChunkedRows rows = given.number();
  const TakenArray window = rows.take(view({1, 2}));
  EXPECT_TRUE(window.is_shared);
  EXPECT_EQ(window.rows.buffer(1), given.arrays[0].buffer(1));
  EXPECT_TRUE(rows.take(view({4})).is_shared);
  EXPECT_FALSE(rows.take(view({2, 3})).is_shared);  // of two arrays
  EXPECT_FALSE(rows.take(view({2, 1})).is_shared);
  EXPECT_EQ(rows.take(view({})).rows.length(), 0);
}

TEST(ChunkedRows, NumbersOfNoRow) {
  const ChunkedRows rows = make_numbered({{1, 2}, {}, {3, 4}}, 3).number();
  EXPECT_EQ(read_rows(rows.take(view({8, 0})).rows), (Values{number(3), number(1)}));
  for (const int64_t wrong : {2, 4, 5, 7, 10, 99}) {
    expect_error(ErrorKind::kIndex, "no array has row", [&] { rows.take(view({0, wrong})); });
    expect_error(ErrorKind::kIndex, "no array has row", [&] { rows.take(view({wrong})); });
  }
  const Numbered one = make_numbered({{1}});
  const ChunkedRows later(share_schema(one.arrays[0].export_schema()), one.arrays, {5});
  expect_error(ErrorKind::kIndex, "no array has row 4", [&] { later.take(view({4})); });
}

TEST(ChunkedRows, StartsThatAreNone) {
  const Numbered given = make_numbered({{1, 2}, {3}});
  const auto number = [&](const std::vector<int64_t>& starts) {
    return ChunkedRows(share_schema(given.arrays[0].export_schema()), given.arrays, starts);
  };
  expect_error(ErrorKind::kValue, "1 row numbers for 2 arrays", [&] { number({0}); });
  expect_error(ErrorKind::kValue, "array 0 of 2 rows starts at row 0, the next one at row 1",
               [&] { number({0, 1}); });
  expect_error(ErrorKind::kValue, "the next one at row -9", [&] { number({0, -9}); });
}

TEST(GroupByPart, PartsInOrderAndRowsAsGiven) {
  const RowStarts starts({0, 4, 4, 9});  // the second part is empty
  const std::vector<int64_t> given{9, 3, 30, 0, 5, 3};
  const PartedNumbers parted = group_by_part(view(given), starts);
  EXPECT_EQ(parted.parts, (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(parted.ends, (std::vector<int64_t>{3, 4, 6}));
  const auto* numbers = reinterpret_cast<const int64_t*>(parted.numbers.data());
  const auto* order = reinterpret_cast<const int64_t*>(parted.order.data());
  EXPECT_EQ((std::vector<int64_t>(numbers, numbers + 6)),
            (std::vector<int64_t>{3, 0, 3, 5, 9, 30}));
  for (std::size_t i = 0; i < given.size(); ++i) EXPECT_EQ(numbers[order[i]], given[i]);
  EXPECT_TRUE(group_by_part(view({}), starts).parts.empty());
  expect_error(ErrorKind::kValue, "not ascending", [] { RowStarts({0, 3, 2}); });
}

}  // namespace
}  // namespace arrowdl::testing
