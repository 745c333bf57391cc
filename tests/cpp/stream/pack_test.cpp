// Tests packing: the blocks, their borders, resumes, and what is refused.
#include "arrowdl/pack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "schema/make_schema.hpp"
#include "stream/row_reader.hpp"
#include "support/build_array.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

const std::vector<std::string> kAll = {"position_ids", "segment_ids", "cu_seqlens", "resume_from"};

PackOptions make_options(int64_t length, PackStrategy strategy = PackStrategy::kConcat) {
  PackOptions options;
  options.column = "tokens";
  options.length = length;
  options.strategy = strategy;
  options.buffer_size = 3;
  options.added = kAll;
  return options;
}

/// Lengths of rows, some of which are empty.
std::vector<int64_t> pick_lengths(Builder& random, int64_t count) {
  std::vector<int64_t> lengths;
  for (; count > 0; --count) lengths.push_back(random.chance(4) ? 0 : random.pick(1, 9));
  return lengths;
}

OwnedSchema lists(const char* format, const char* item = "i") { return field(format, field(item)); }

/// Rows of tokens, labels and a number, in one array: token t of row r is 100 r + t.
DeviceArray make_rows(int64_t first, const std::vector<int64_t>& lengths, const char* format,
                      unsigned seed) {
  Values tokens;
  Values labels;
  Values ids;
  for (const int64_t length : lengths) {
    Values row;
    Values negative;
    for (int64_t i = 0; i < length; ++i) {
      row.push_back(number(100 * first + i));
      negative.push_back(number(-i));
    }
    tokens.push_back(items(row));
    labels.push_back(items(negative));
    ids.push_back(number(first++));
  }
  Builder builder(seed);
  return make_struct({"tokens", "id", "labels"},
                     {builder.import(lists(format), tokens), builder.import(field("l"), ids),
                      builder.import(lists(format, "s"), labels)});
}

/// A stream of arrays of `rows` rows each.
OwnedStream open(const std::vector<int64_t>& lengths, const char* format = "+l",
                 std::size_t rows = 3, int64_t skip = 0, unsigned seed = 1) {
  std::vector<DeviceArray> arrays;
  arrays.push_back(make_rows(0, {}, format, seed));
  for (std::size_t i = 0; i < lengths.size(); i += rows) {
    const auto end = std::min(lengths.size(), i + rows);
    arrays.push_back(make_rows(static_cast<int64_t>(i),
                               {lengths.begin() + static_cast<std::ptrdiff_t>(i),
                                lengths.begin() + static_cast<std::ptrdiff_t>(end)},
                               format, ++seed));
  }
  return slice_stream(make_stream(std::move(arrays)), skip, INT64_MAX);
}

OwnedStream stream_of(const DeviceArray& array) {
  std::vector<DeviceArray> arrays{array};
  return make_stream(std::move(arrays));
}

/// A stream of one column "tokens".
OwnedStream one_column(const OwnedSchema& schema, const Values& rows, unsigned seed = 1) {
  return stream_of(make_struct({"tokens"}, {Builder(seed).import(schema, rows)}));
}

Values read_packed(const OwnedStream& stream, int64_t most = ArrayStream::kAnyRows) {
  Values values;
  while (const DeviceArray array = stream->next(most)) {
    EXPECT_LE(array.length(), most);
    const Values rows = read_rows(array);
    values.insert(values.end(), rows.begin(), rows.end());
  }
  EXPECT_FALSE(stream->next());
  return values;
}

// ---------------------------------------------------------------- the model

/// A part of row `row`.
struct Part {
  int64_t row;
  int64_t start;
  int64_t length;
};
struct Expected {
  std::vector<Part> parts;
  PackPosition after;
};

Value make_expected_row(const Expected& block, int64_t length) {
  Values tokens;
  Values ids;
  Values labels;
  Values positions;
  Values segments;
  Values offsets{number(0)};
  for (const Part& part : block.parts) {
    ids.push_back(number(part.row));
    for (int64_t i = 0; i < part.length; ++i) {
      tokens.push_back(number(100 * part.row + part.start + i));
      labels.push_back(number(-part.start - i));
      positions.push_back(number(i));
      segments.push_back(number(static_cast<int64_t>(ids.size())));
    }
    offsets.push_back(number(static_cast<int64_t>(tokens.size())));
  }
  const auto used = static_cast<int64_t>(tokens.size());
  for (int64_t i = 0; i < length - used; ++i) {
    tokens.push_back(number(0));
    labels.push_back(number(0));
    positions.push_back(number(i));
    segments.push_back(number(0));
  }
  if (used < length) offsets.push_back(number(length));
  return items({items(tokens), items(ids), items(labels), items(positions), items(segments),
                items(offsets),
                items(numbers({block.after.row, block.after.value, block.after.block}))});
}

Values make_expected(const std::vector<Expected>& blocks, int64_t length) {
  Values rows;
  for (const Expected& block : blocks) rows.push_back(make_expected_row(block, length));
  return rows;
}

std::vector<Expected> concat_model(const std::vector<int64_t>& lengths, int64_t length) {
  std::vector<Expected> blocks;
  int64_t space = 0;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    for (int64_t start = 0; start < lengths[row];) {
      if (space == 0) {
        blocks.push_back({});
        space = length;
      }
      const int64_t taken = std::min(space, lengths[row] - start);
      blocks.back().parts.push_back({static_cast<int64_t>(row), start, taken});
      start += taken;
      space -= taken;
      const bool is_done = start == lengths[row];
      blocks.back().after = {static_cast<int64_t>(row) + (is_done ? 1 : 0), is_done ? 0 : start, 0};
    }
  }
  return blocks;
}

int64_t count_values(const std::vector<Part>& parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const Part& part) { return sum + part.length; });
}

std::vector<Expected> place_window(std::vector<Part> left, int64_t length) {
  std::vector<Expected> blocks;
  const auto is_earlier = [](const Part& a, const Part& b) {
    return std::pair(a.row, a.start) < std::pair(b.row, b.start);
  };
  while (!left.empty()) {
    Expected block;
    for (int64_t space = length;;) {
      auto best = left.end();
      for (auto part = left.begin(); part != left.end(); ++part) {
        if (part->length <= space && (best == left.end() || part->length > best->length)) {
          best = part;
        }
      }
      if (best == left.end()) break;
      space -= best->length;
      block.parts.push_back(*best);
      left.erase(best);
    }
    std::sort(block.parts.begin(), block.parts.end(), is_earlier);
    blocks.push_back(block);
  }
  const auto emptiest =
      std::min_element(blocks.begin(), blocks.end(), [](const Expected& a, const Expected& b) {
        return count_values(a.parts) < count_values(b.parts);
      });
  if (emptiest == blocks.end()) return blocks;
  const Expected last = *emptiest;
  blocks.erase(emptiest);
  std::sort(blocks.begin(), blocks.end(), [&](const Expected& a, const Expected& b) {
    return is_earlier(a.parts[0], b.parts[0]);
  });
  blocks.push_back(last);
  return blocks;
}

std::vector<Expected> best_fit_model(const std::vector<int64_t>& lengths, int64_t length,
                                     int64_t buffer_size) {
  std::vector<Expected> all;
  std::vector<Part> window;
  int64_t first = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    for (int64_t start = 0; start < lengths[i]; start += length) {
      window.push_back({row, start, std::min(length, lengths[i] - start)});
    }
    const bool is_last = i + 1 == lengths.size();
    if (count_values(window) < buffer_size * length && !is_last) continue;
    const int64_t next = window.empty() ? first : window.back().row + 1;
    std::vector<Expected> blocks = place_window(std::move(window), length);
    int64_t number = 0;
    for (Expected& block : blocks) block.after = {first, 0, ++number};
    first = next;
    if (!blocks.empty()) blocks.back().after = {first, 0, 0};
    all.insert(all.end(), blocks.begin(), blocks.end());
    window.clear();
  }
  return all;
}

class PackTest : public ::testing::Test {
 protected:
  void SetUp() override { objects_ = live_objects(); }
  void TearDown() override { EXPECT_EQ(live_objects(), objects_); }

 private:
  int64_t objects_ = 0;
};

// ---------------------------------------------------------------- blocks

TEST_F(PackTest, BlocksAreThoseOfTheModelInEveryLayoutAndDivision) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    Builder random(seed);
    const std::vector<int64_t> lengths = pick_lengths(random, random.pick(0, 12));
    const int64_t length = random.pick(1, 8);
    const char* formats[] = {"+l", "+L", "+vl", "+vL"};
    const char* format = formats[random.pick(0, 3)];
    const auto rows = static_cast<std::size_t>(random.pick(1, 5));
    const auto most = random.pick(1, 4);
    const Values concat = make_expected(concat_model(lengths, length), length);
    ASSERT_EQ(read_packed(pack(open(lengths, format, rows, 0, seed), make_options(length)), most),
              concat);
    PackOptions options = make_options(length, PackStrategy::kBestFit);
    options.buffer_size = random.pick(1, 4);
    const Values placed =
        make_expected(best_fit_model(lengths, length, options.buffer_size), length);
    ASSERT_EQ(read_packed(pack(open(lengths, format, rows, 0, seed), options), most), placed);
  }
}

TEST_F(PackTest, EachBlockSaysWhereToContinue) {
  for (unsigned seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE(seed);
    Builder random(seed);
    const std::vector<int64_t> lengths = pick_lengths(random, 10);
    for (const PackStrategy strategy : {PackStrategy::kConcat, PackStrategy::kBestFit}) {
      PackOptions options = make_options(random.pick(2, 8), strategy);
      options.drop_last = random.chance(3);
      const Values whole = read_packed(pack(open(lengths), options));
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const Values& after = whole[i].items.back().items;
        options.from = {after[0].number, after[1].number, after[2].number};
        const OwnedStream rest = pack(open(lengths, "+l", 2, options.from.row), options);
        ASSERT_EQ(read_packed(rest),
                  Values(whole.begin() + static_cast<std::ptrdiff_t>(i) + 1, whole.end()));
      }
    }
  }
}

TEST_F(PackTest, ShuffledRowsArePackedFromWhereTheyAre) {
  int64_t not_copied = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Builder random(seed);
    const std::vector<int64_t> lengths = pick_lengths(random, random.pick(0, 40));
    const auto rows = static_cast<std::size_t>(random.pick(1, 9));
    const auto window = random.pick(1, 50);
    const auto skip = random.chance(2) ? 0 : random.pick(0, 20);
    const auto kept = random.chance(2) ? INT64_MAX : random.pick(0, 30);
    const char* formats[] = {"+l", "+L", "+vl", "+vL"};
    const char* format = formats[random.pick(0, 3)];
    PackOptions options = make_options(
        random.pick(1, 8), random.chance(2) ? PackStrategy::kConcat : PackStrategy::kBestFit);
    options.drop_last = random.chance(3);
    const auto shuffled = [&](int64_t start) {
      return slice_stream(
          slice_stream(shuffle(open(lengths, format, rows, 0, seed), window, seed), skip, kept),
          start, INT64_MAX);
    };
    not_copied += shuffled(0)->next_permuted().count;
    const auto most = random.pick(1, 4);
    const Values copied = read_packed(pack(rebatch(shuffled(0), random.pick(1, 9)), options), most);
    ASSERT_EQ(read_packed(pack(shuffled(0), options), most), copied);
    if (copied.empty()) continue;
    const auto done = random.pick(0, static_cast<int64_t>(copied.size()) - 1);
    const Values& after = copied[static_cast<std::size_t>(done)].items.back().items;
    options.from = {after[0].number, after[1].number, after[2].number};
    ASSERT_EQ(read_packed(pack(shuffled(options.from.row), options), most),
              Values(copied.begin() + static_cast<std::ptrdiff_t>(done) + 1, copied.end()));
  }
  EXPECT_GT(not_copied, 200);
}

TEST_F(PackTest, ShuffledRowsOfWhichSomeWereReadArePacked) {
  const auto shuffled = [] {
    OwnedStream stream = shuffle(open({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, "+l", 4), 7, 2);
    EXPECT_EQ(stream->next(2).length(), 2);
    return stream;
  };
  const Values copied = read_packed(pack(rebatch(shuffled(), 3), make_options(4)));
  EXPECT_EQ(read_packed(pack(shuffled(), make_options(4))), copied);
}

TEST_F(PackTest, ShuffledRowsOfManySmallArraysAndNullRowsAreCopiedBefore) {
  const std::vector<int64_t> lengths(100, 2);
  EXPECT_EQ(shuffle(open(lengths, "+l", 1), 100, 1)->next_permuted().count, 0);
  EXPECT_EQ(shuffle(open(lengths, "+l", 2), 100, 1)->next_permuted().count, 88);
  const OwnedSchema structs = field("+s", field("+l", field("i")));
  const Value row = items({items(numbers({1, 2}))});
  const OwnedStream stream =
      shuffle(stream_of(Builder(1).import(structs, {row, null(), row})), 3, 1);
  EXPECT_EQ(stream->next_permuted().count, 0);
  EXPECT_EQ(stream->next().length(), 3);
}

TEST_F(PackTest, ShuffledRowsThatAreUsedUpAreReleased) {
  for (const PackStrategy strategy : {PackStrategy::kConcat, PackStrategy::kBestFit}) {
    const std::vector<int64_t> lengths(100, 3);
    const OwnedStream stream =
        pack(shuffle(open(lengths, "+l", 1), 10, 1), make_options(4, strategy));
    const int64_t held = live_objects();
    for (int block = 0; block < 70; ++block) ASSERT_EQ(stream->next(1).length(), 1);
    EXPECT_LT(live_objects(), held / 2);
  }
}

TEST_F(PackTest, AWindowIsReleasedBeforeTheNextOneIsRead) {
  class Counting final : public ArrayStream {
   public:
    explicit Counting(int64_t* most) : ArrayStream(open({})->schema(), kDLCPU), most_(most) {}
    DeviceArray next(int64_t) override {
      *most_ = std::max(*most_, live_objects());
      return row_ < 200 ? make_rows(row_++, {3}, "+l", 1) : DeviceArray();
    }

   private:
    int64_t* most_;
    int64_t row_ = 0;
  };
  int64_t of_shuffle = 0;
  int64_t of_pack = 0;
  const auto open_shuffle = [](int64_t* most) {
    return shuffle(std::make_unique<Counting>(most), 50, 1);
  };
  ASSERT_GT(open_shuffle(&of_shuffle)->next_permuted().count, 0);
  const OwnedStream shuffled = open_shuffle(&of_shuffle);
  while (shuffled->next(1)) continue;
  for (const PackStrategy strategy : {PackStrategy::kConcat, PackStrategy::kBestFit}) {
    const OwnedStream stream = pack(open_shuffle(&of_pack), make_options(4, strategy));
    while (stream->next(1)) continue;
  }
  EXPECT_LT(2 * of_pack, 3 * of_shuffle);
}

TEST_F(PackTest, ErrorsOfShuffledRowsAreThoseOfTheirOrder) {
  const Value two = items(numbers({1, 2}));
  const auto shuffled = [&] {
    return shuffle(one_column(field("+l", field("i")), {two, null(), two, two, two}), 5, 3);
  };
  const auto find = [](const OwnedStream& stream) {
    std::string message;
    for (int times = 0; times < 2; ++times) {
      try {
        while (stream->next()) continue;
      } catch (const Error& error) {
        message += error.what();
      }
    }
    return message;
  };
  const std::string message = find(pack(rebatch(shuffled(), 2), make_options(4)));
  EXPECT_NE(message.find("is null"), std::string::npos);
  EXPECT_EQ(find(pack(shuffled(), make_options(4))), message);
}

/// The items of a packed column, with the padding.
Values flatten_blocks(const Values& blocks) {
  Values flat;
  for (const Value& block : blocks) {
    const Values& tokens = block.items[0].items;
    flat.insert(flat.end(), tokens.begin(), tokens.end());
  }
  return flat;
}

TEST_F(PackTest, ItemsOfAnyFixedWidth) {
  const Value zero = number(0);
  const std::pair<OwnedSchema, Value> kinds[] = {
      {required(field("c")), zero},
      {required(field("g")), zero},
      {required(field("b")), zero},
      {required(field("tdD")), zero},
      {required(field("w:3")), zero},
      {required(field("+w:2", required(field("s")))), items({zero, zero})},
      {required(field("+w:3", required(field("b")))), items({zero, zero, zero})},
  };
  for (unsigned seed = 0; seed < 30; ++seed) {
    for (const auto& [item, padding] : kinds) {
      SCOPED_TRACE(concat(seed, " ", item->format));
      const OwnedSchema schema = required(field(seed % 2 == 0 ? "+l" : "+vL", copy(item)));
      const Values rows = Builder(seed).make_values(parse_schema(*schema.get()), 7);
      Values expected;
      for (const Value& row : rows) {
        expected.insert(expected.end(), row.items.begin(), row.items.end());
      }
      while (expected.size() % 4 != 0) expected.push_back(padding);
      ASSERT_EQ(flatten_blocks(read_packed(pack(one_column(schema, rows, seed), make_options(4)))),
                expected);
    }
  }
}

TEST_F(PackTest, ItemsWithoutBytesHaveNoMemory) {
  const OwnedSchema schema = required(field("+l", required(field("w:0"))));
  const Values rows = {items(numbers({0, 0})), items({}), items(numbers({0, 0, 0}))};
  const Values blocks = read_packed(pack(one_column(schema, rows, 1), make_options(4)));
  EXPECT_EQ(flatten_blocks(blocks), numbers({0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(PackTest, FixedSizeListsOfOneSizeArePackedTogether) {
  const auto make = [](const char* format, int64_t size) {
    Values rows;
    for (int64_t row = 0; row < 3; ++row) {
      Values values;
      for (int64_t i = 0; i < size; ++i) values.push_back(number(10 * row + i));
      rows.push_back(items(values));
    }
    return Builder(1).import(field(format, field("l")), rows);
  };
  const DeviceArray rows = make_struct({"tokens", "labels", "vector"},
                                       {make("+w:2", 2), make("+w:2", 2), make("+w:3", 3)});
  PackOptions options = make_options(4);
  options.added.clear();
  const Values blocks = read_packed(pack(stream_of(rows), options));
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].items[0], items(numbers({0, 1, 10, 11})));
  EXPECT_EQ(blocks[0].items[1], blocks[0].items[0]);
  EXPECT_EQ(blocks[1].items[0], items(numbers({20, 21, 0, 0})));
  EXPECT_EQ(blocks[1].items[2], items({items(numbers({20, 21, 22}))}));
}

TEST_F(PackTest, PaddingIsOfEachColumn) {
  PackOptions options = make_options(4);
  options.padding = {{0, {7, 1}}, {2, {0x9C, 0xFF}}};  // 263 of int32, -100 of int16
  const Values blocks = read_packed(pack(open({3}), options));
  EXPECT_EQ(blocks[0].items[0], items(numbers({0, 1, 2, 263})));
  EXPECT_EQ(blocks[0].items[2], items(numbers({0, -1, -2, -100})));
}

TEST_F(PackTest, LongSequences) {
  const std::vector<int64_t> lengths{5, 2, 9, 1};
  for (const PackStrategy strategy : {PackStrategy::kConcat, PackStrategy::kBestFit}) {
    const auto is_best_fit = strategy == PackStrategy::kBestFit;
    const auto expect = [&](const std::vector<int64_t>& used) {
      return make_expected(is_best_fit ? best_fit_model(used, 4, 3) : concat_model(used, 4), 4);
    };
    PackOptions options = make_options(4, strategy);
    options.longer = LongSequence::kTruncate;
    EXPECT_EQ(read_packed(pack(open(lengths), options)), expect({4, 2, 4, 1}));
    options.longer = LongSequence::kDrop;
    EXPECT_EQ(read_packed(pack(open(lengths), options)), expect({0, 2, 0, 1}));
    options.longer = LongSequence::kSplit;
    EXPECT_EQ(read_packed(pack(open(lengths), options)), expect(lengths));
    options.longer = LongSequence::kRaise;
    options.from.row = 40;
    const OwnedStream stream = pack(open(lengths), options);
    for (int i = 0; i < 2; ++i) {
      expect_error(ErrorKind::kValue, "row 40 has 5 items in \"tokens\", and a block has 4",
                   [&] { stream->next(); });
    }
  }
}

TEST_F(PackTest, DropLast) {
  PackOptions options = make_options(4);
  options.drop_last = true;
  EXPECT_EQ(read_packed(pack(open({4, 5}), options)).size(), 2U);
  EXPECT_EQ(read_packed(pack(open({4, 4}), options)).size(), 2U);
  EXPECT_EQ(read_packed(pack(open({3}), options)).size(), 0U);
  options.strategy = PackStrategy::kBestFit;
  options.buffer_size = 1;  // blocks of rows 0; 1 and 2; 3
  EXPECT_EQ(read_packed(pack(open({4, 3, 3, 1}), options)).size(), 3U);
  EXPECT_EQ(read_packed(pack(open({4, 3, 1}), options)).size(), 2U);
  EXPECT_EQ(read_packed(pack(open({3, 0}), options)).size(), 0U);
}

TEST_F(PackTest, HeavyTailsNeedLittlePadding) {
  PackOptions options = make_options(100, PackStrategy::kBestFit);
  options.buffer_size = 256;
  Builder random(3);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 1500; ++i)
    lengths.push_back(std::min<int64_t>(100, 2000 / random.pick(1, 999)));
  const auto values = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const OwnedStream stream = pack(open(lengths, "+l", 1000), options);
  int64_t blocks = 0;
  while (const DeviceArray array = stream->next()) blocks += array.length();
  EXPECT_GE(100 * values, 99 * 100 * blocks);
}

TEST_F(PackTest, NothingIsReadBeforeTheFirstBlockIsAskedFor) {
  class Failing final : public ArrayStream {
   public:
    explicit Failing(std::shared_ptr<const ParsedSchema> schema)
        : ArrayStream(std::move(schema), kDLCPU) {}
    DeviceArray next(int64_t) override { raise_value_error("read"); }
  };
  const OwnedStream stream = pack(std::make_unique<Failing>(open({1})->schema()), make_options(4));
  expect_error(ErrorKind::kValue, "read", [&] { stream->next(); });
}

TEST_F(PackTest, RowsThatAreUsedUpAreReleased) {
  for (const PackStrategy strategy : {PackStrategy::kConcat, PackStrategy::kBestFit}) {
    const OwnedStream stream =
        pack(open(std::vector<int64_t>(100, 3), "+l", 1), make_options(4, strategy));
    const int64_t held = live_objects();
    for (int block = 0; block < 70; ++block) ASSERT_EQ(stream->next(1).length(), 1);
    EXPECT_LT(live_objects(), held / 2);
  }
}

// ---------------------------------------------------------------- refusals

TEST_F(PackTest, NullsAreRefusedByRow) {
  const OwnedSchema schema = field("+l", field("i"));
  const Value two = items(numbers({1, 2}));
  const auto expect = [&](const char* text, Values rows) {
    PackOptions options = make_options(4);
    options.from.row = 7;
    const OwnedStream stream = pack(one_column(schema, rows), options);
    expect_error(ErrorKind::kValue, text, [&] { stream->next(); });
    expect_error(ErrorKind::kValue, text, [&] { stream->next(); });
  };
  expect("row 9 of column \"tokens\" is null", {two, two, null(), two});
  expect("row 8 of column \"tokens\" has null items", {two, items({number(1), null()})});
  const OwnedSchema pairs = field("+l", field("+w:2", field("i")));
  expect_error(ErrorKind::kValue, "row 0 of column \"tokens\" has null items", [&] {
    pack(one_column(pairs, {items({items({number(1), null()})})}), make_options(4))->next();
  });
  const OwnedSchema structs = field("+s", field("+l", field("i")));
  PackOptions options = make_options(4);
  options.column = "a";
  expect_error(ErrorKind::kValue, "row 1 of column \"a\" is null", [&] {
    pack(stream_of(Builder(1).import(structs, {items({two}), null()})), options)->next();
  });
}

/// A stream of lists without a validity bitmap, which a Builder may add.
template <typename Offset>
OwnedStream plain_lists(const char* format, const OwnedSchema& item, const DeviceArray& tokens,
                        const std::vector<Offset>& offsets) {
  ArrayParts parts;
  parts.length = static_cast<int64_t>(offsets.size()) - 1;
  parts.buffers = {Buffer(), exact(offsets)};
  parts.children.push_back(share_array(tokens));
  OwnedSchema schema = field(format, copy_schema(*item.get()));
  return stream_of(make_struct(
      {"tokens"}, {DeviceArray::import(std::move(schema), make_array(std::move(parts)))}));
}

TEST_F(PackTest, NullItemsOfListsWithoutNulls) {
  const auto expect = [](const OwnedSchema& item, const Values& tokens) {
    for (unsigned seed = 0; seed < 8; ++seed) {  // some make bitmaps where there are no nulls
      const DeviceArray array = Builder(seed).import(item, tokens);
      const OwnedStream stream =
          pack(plain_lists<int32_t>("+l", item, array, {0, 1, 2}), make_options(4));
      expect_error(ErrorKind::kValue, "row 1 of column \"tokens\" has null items",
                   [&] { stream->next(); });
    }
  };
  expect(field("i"), {number(1), null()});
  expect(field("+w:2", field("i")), {items(numbers({1, 2})), items({number(3), null()})});
}

template <typename Offset>
void expect_malformed_offsets(const char* format) {
  const OwnedSchema item = field("i");
  const DeviceArray tokens = DeviceArray::make_primitive(
      *find_dtype("int32"), 3, exact(std::vector<int32_t>{1, 2, 3}), Device{});
  constexpr Offset kLeast = std::numeric_limits<Offset>::min();
  constexpr Offset kMost = std::numeric_limits<Offset>::max();
  for (const std::vector<Offset>& offsets :
       {std::vector<Offset>{0, 2, 1}, std::vector<Offset>{0, 2, 4}, std::vector<Offset>{0, -1, 2},
        std::vector<Offset>{kLeast, kMost, 2}, std::vector<Offset>{0, kLeast, kMost}}) {
    const OwnedStream stream = pack(plain_lists(format, item, tokens, offsets), make_options(4));
    expect_error(ErrorKind::kValue, "malformed", [&] { stream->next(); });
    expect_error(ErrorKind::kValue, "malformed", [&] { stream->next(); });
  }
}

TEST_F(PackTest, OffsetsThatDescendOrLeaveTheItems) {
  expect_malformed_offsets<int32_t>("+l");
  expect_malformed_offsets<int64_t>("+L");
}

TEST_F(PackTest, LengthsHaveToAgreeWithinARow) {
  Builder builder(1);
  const OwnedSchema schema = field("+l", field("i"));
  const DeviceArray tokens = builder.import(schema, {items(numbers({1})), items(numbers({1, 2}))});
  const DeviceArray tags = builder.import(schema, {items(numbers({1})), items(numbers({1}))});
  const DeviceArray rows = make_struct({"tags", "tokens"}, {tags, tokens});
  PackOptions options = make_options(4);
  expect_error(ErrorKind::kValue, "row 1 has 2 items in \"tokens\" and 1 in \"tags\"",
               [&] { pack(stream_of(rows), options)->next(); });
  options.has_aligned = true;
  const Values blocks = read_packed(pack(stream_of(rows), options));
  EXPECT_EQ(blocks[0].items[0], items({items(numbers({1})), items(numbers({1}))}));
  EXPECT_EQ(blocks[0].items[1], items(numbers({1, 1, 2, 0})));
}

TEST_F(PackTest, WrongOptionsLoseNothing) {
  OwnedStream stream = open({3});
  const auto expect = [&](ErrorKind kind, const char* text, const PackOptions& options) {
    expect_error(kind, text, [&] { pack(std::move(stream), options); });
  };
  const auto with = [](auto change) {
    PackOptions options = make_options(4);
    change(&options);
    return options;
  };
  expect(ErrorKind::kValue, "length=0", with([](PackOptions* o) { o->length = 0; }));
  expect(ErrorKind::kValue, "2^30", with([](PackOptions* o) { o->length = 1 << 30 | 1; }));
  expect(ErrorKind::kValue, "buffer_size=0", with([](PackOptions* o) { o->buffer_size = 0; }));
  expect(ErrorKind::kValue, "at most 2^32", with([](PackOptions* o) {
           o->strategy = PackStrategy::kBestFit;
           o->buffer_size = 1 << 30 | 1;
         }));
  expect(ErrorKind::kValue, "no column \"x\"", with([](PackOptions* o) { o->column = "x"; }));
  expect(ErrorKind::kType, "is of int64", with([](PackOptions* o) { o->column = "id"; }));
  expect(ErrorKind::kType, "is of int64", with([](PackOptions* o) {
           o->has_aligned = true;
           o->aligned = {"id"};
         }));
  expect(ErrorKind::kValue, "packing adds", with([](PackOptions* o) { o->added = {"ids"}; }));
  expect(ErrorKind::kValue, "twice",
         with([](PackOptions* o) { o->added = {"cu_seqlens", "cu_seqlens"}; }));
  expect(ErrorKind::kValue, "resume_from=(0, 0, 1)",
         with([](PackOptions* o) { o->from.block = 1; }));
  expect(ErrorKind::kValue, "resume_from=(0, 1, 0)", with([](PackOptions* o) {
           o->strategy = PackStrategy::kBestFit;
           o->from.value = 1;
         }));
  expect(ErrorKind::kValue, "resume_from=(-1", with([](PackOptions* o) { o->from.row = -1; }));
  EXPECT_EQ(read_packed(pack(std::move(stream), make_options(4))).size(), 1U);
}

TEST_F(PackTest, OtherTypesAreRefused) {
  const auto expect = [](const char* text, const OwnedSchema& schema) {
    expect_error(ErrorKind::kType, text, [&] { pack(one_column(schema, {}), make_options(4)); });
  };
  expect("a fixed width", field("+l", field("u")));
  expect("a fixed width", field("+l", dictionary("c", field("i"))));
  expect("can be packed", map(field("i"), field("i")));
  expect("can be packed", field("z"));
  expect_error(ErrorKind::kType, "columns are fields", [] {
    pack(stream_of(Builder(1).import(field("+l", field("i")), {})), make_options(4));
  });
  const DeviceArray taken =
      make_struct({"tokens", "segment_ids"},
                  {Builder(1).import(lists("+l"), {}), Builder(1).import(field("i"), {})});
  expect_error(ErrorKind::kValue, "a column \"segment_ids\" already",
               [&] { pack(stream_of(taken), make_options(4)); });
}

TEST_F(PackTest, AStreamFromAnotherRowIsRefused) {
  PackOptions options = make_options(4);
  options.from = {1, 3, 0};
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{3, 9}, {0, 9}, {}}) {
    const OwnedStream stream = pack(open(lengths), options);
    for (int i = 0; i < 2; ++i) {
      expect_error(ErrorKind::kValue, "value 3 of row 1", [&] { stream->next(); });
    }
  }
  options.strategy = PackStrategy::kBestFit;
  options.from = {1, 0, 2};
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{4, 4}, {}}) {
    const OwnedStream stream = pack(open(lengths), options);
    for (int i = 0; i < 2; ++i) {
      expect_error(ErrorKind::kValue, "block 2 of the window from row 1", [&] { stream->next(); });
    }
  }
}

// ---------------------------------------------------------------- cu_seqlens of batches

TEST_F(PackTest, OffsetsOfBlocksAreJoined) {
  const auto flatten = [](const DeviceArray& column) {
    return read_rows(flatten_cu_seqlens(column));
  };
  for (const char* format : {"+l", "+vL"}) {
    const DeviceArray column = Builder(1).import(
        required(field(format, required(field("i")))),
        {items(numbers({0, 3, 4})), items(numbers({0, 4})), items(numbers({0, 1, 2, 4}))});
    EXPECT_EQ(flatten(column), numbers({0, 3, 4, 8, 9, 10, 12}));
    EXPECT_EQ(flatten(column.slice(1, 2)), numbers({0, 4, 5, 6, 8}));
    EXPECT_EQ(flatten(column.slice(1, 0)), numbers({0}));
  }
}

TEST_F(PackTest, OtherOffsetsAreRefused) {
  const auto expect = [](ErrorKind kind, const char* text, const OwnedSchema& schema,
                         const Values& rows) {
    expect_error(kind, text, [&] { flatten_cu_seqlens(Builder(1).import(schema, rows)); });
  };
  const OwnedSchema schema = required(field("+l", required(field("i"))));
  expect(ErrorKind::kType, "lists of int32", field("+l", field("l")), {});
  expect(ErrorKind::kType, "lists of int32", field("i"), {});
  expect(ErrorKind::kValue, "row 1 ", schema, {items(numbers({0, 4})), items(numbers({1, 4}))});
  expect(ErrorKind::kValue, "row 0 ", schema, {items(numbers({0, 4, 3}))});
  expect(ErrorKind::kValue, "row 0 ", schema, {items({})});
  expect(ErrorKind::kValue, "must not be null", field("+l", field("i")), {null()});
  const Value half = items(numbers({0, 1 << 30}));
  expect(ErrorKind::kBuffer, "fewer blocks", schema, {half, half});
}

}  // namespace
}  // namespace arrowdl::testing
