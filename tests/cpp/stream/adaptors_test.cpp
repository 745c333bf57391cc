// Tests the adaptors of streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/to_arrow.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

/// Rows of a random type in random chunks, some of them empty.
struct Source {
  Source(const OwnedSchema& schema, unsigned seed) : builder(seed) {
    const Type type = parse_schema(*schema.get());
    shared = share_schema(copy(schema));
    for (int64_t i = builder.pick(0, 6); i > 0; --i) {
      const Values chunk = builder.make_values(type, builder.chance(5) ? 0 : builder.pick(0, 20));
      arrays.push_back(builder.import(schema, chunk));
      rows.insert(rows.end(), chunk.begin(), chunk.end());
    }
  }

  OwnedStream open() const { return make_stream(shared, arrays); }
  auto count() const { return static_cast<int64_t>(rows.size()); }

  Builder builder;
  std::shared_ptr<const ParsedSchema> shared;
  std::vector<DeviceArray> arrays;
  Values rows;
};

Values read_values(ArrayStream& stream) {
  Values values;
  while (const DeviceArray array = stream.next()) {
    const Values rows = read_rows(array);
    values.insert(values.end(), rows.begin(), rows.end());
  }
  EXPECT_FALSE(stream.next()) << "a stream that has ended gives nothing more";
  return values;
}

Values read_values(const OwnedStream& stream) { return read_values(*stream); }

std::vector<int64_t> read_lengths(const OwnedStream& stream) {
  std::vector<int64_t> lengths;
  while (const DeviceArray array = stream->next()) lengths.push_back(array.length());
  return lengths;
}

/// 0, 1, 2, … in chunks of `lengths`.
OwnedStream count_up(const std::vector<int64_t>& lengths) {
  const OwnedSchema schema = field("l");
  std::vector<DeviceArray> arrays;
  int64_t next = 0;
  for (const int64_t length : lengths) {
    Values rows;
    for (int64_t i = 0; i < length; ++i) rows.push_back(number(next++));
    arrays.push_back(Builder(1).import(schema, rows));
  }
  return make_stream(share_schema(copy(schema)), std::move(arrays));
}

Values select(const Values& rows, const std::vector<uint32_t>& order) {
  Values selected;
  for (const uint32_t i : order) selected.push_back(rows[i]);
  return selected;
}

class AdaptorTest : public ::testing::TestWithParam<NamedSchema> {
 protected:
  void SetUp() override { objects_ = live_objects(); }
  void TearDown() override { EXPECT_EQ(live_objects(), objects_); }

 private:
  int64_t objects_ = 0;
};

TEST_P(AdaptorTest, RebatchKeepsTheRows) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Source source(GetParam().make(), seed);
    const int64_t rows = source.builder.pick(1, 30);
    const std::vector<int64_t> lengths = read_lengths(rebatch(source.open(), rows));
    for (std::size_t i = 0; i + 1 < lengths.size(); ++i) ASSERT_EQ(lengths[i], rows);
    ASSERT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), source.count());
    ASSERT_EQ(read_values(rebatch(source.open(), rows)), source.rows);
    const Values whole = read_values(rebatch(source.open(), rows, true));
    const auto kept = source.count() / rows * rows;
    ASSERT_EQ(whole, Values(source.rows.begin(), source.rows.begin() + kept));
  }
}

TEST_P(AdaptorTest, ShufflePermutesWindows) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Source source(GetParam().make(), seed);
    const int64_t window = source.builder.pick(1, 40);
    const Values shuffled = read_values(shuffle(source.open(), window, seed));
    // The chunks before and after do not matter.
    ASSERT_EQ(read_values(rebatch(shuffle(rebatch(source.open(), 3), window, seed), 5)), shuffled);
    ASSERT_EQ(shuffled.size(), source.rows.size());
    // The type does not matter: a column of numbers has the same order.
    ASSERT_EQ(shuffled, select(source.rows, [&] {
                std::vector<uint32_t> order;
                for (const Value& value :
                     read_values(shuffle(count_up({source.count()}), window, seed))) {
                  order.push_back(static_cast<uint32_t>(value.number));
                }
                return order;
              }()));
  }
}

TEST_P(AdaptorTest, SlicesAndShardsAreAllRows) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Source source(GetParam().make(), seed);
    const int64_t start = source.builder.pick(0, 50);
    const int64_t length = source.builder.pick(0, 50);
    const int64_t first = std::min(start, source.count());
    const int64_t last = std::min(start + length, source.count());
    ASSERT_EQ(read_values(slice_stream(source.open(), start, length)),
              Values(source.rows.begin() + first, source.rows.begin() + last));
    const int64_t shards = source.builder.pick(1, 5);
    Values dealt;
    for (const DeviceArray& array : source.arrays) {
      for (int64_t i = 0; i < shards; ++i) {
        const OwnedStream part = shard(make_stream(source.shared, {array}), shards, i);
        const Values rows = read_values(part);
        dealt.insert(dealt.end(), rows.begin(), rows.end());
      }
    }
    ASSERT_EQ(dealt, source.rows);
  }
}

TEST_P(AdaptorTest, InterleaveTakesRowsInTurn) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Source source(GetParam().make(), seed);
    const int64_t rows = source.builder.pick(1, 6);
    const int64_t skip = source.builder.pick(0, 4);
    const int64_t count = source.builder.pick(1, 4);
    std::vector<OwnedStream> streams;
    std::vector<std::size_t> ends;  // the streams have different lengths
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = source.builder.pick(0, static_cast<unsigned>(source.count()));
      ends.push_back(static_cast<std::size_t>(length));
      streams.push_back(slice_stream(source.open(), 0, length));
    }
    Values expected;
    const auto taken = static_cast<std::size_t>(rows);
    const auto step = static_cast<std::size_t>(rows + skip);
    for (std::size_t start = 0; start < source.rows.size(); start += step) {
      for (const std::size_t end : ends) {
        for (std::size_t i = start; i < std::min(end, start + taken); ++i) {
          expected.push_back(source.rows[i]);
        }
      }
    }
    ASSERT_EQ(read_values(rebatch(interleave(std::move(streams), rows, skip), 3)), expected);
  }
}

TEST_P(AdaptorTest, PrefetchAndExportKeepTheRows) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Source source(GetParam().make(), seed);
    const int64_t depth = source.builder.pick(1, 3);
    ASSERT_EQ(read_values(prefetch(source.open(), depth)), source.rows);
    ASSERT_EQ(read_values(import_stream(export_stream(source.open()))), source.rows);
    ASSERT_EQ(read_values(import_stream(export_device_stream(source.open()))), source.rows);
  }
  stop_background_reads(10);
}

INSTANTIATE_TEST_SUITE_P(EveryType, AdaptorTest, ::testing::ValuesIn(every_type()),
                         [](const auto& info) { return info.param.name; });

// ---------------------------------------------------------------- select

TEST(SelectColumns, InAnyOrderWithTheNullsOfTheRows) {
  const OwnedSchema schema = field("+s", field("l"), field("u"), field("+l", field("i")));
  const OwnedSchema swapped = field("+s", field("+l", field("i")), field("l"));
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Source source(schema, seed);
    std::vector<std::string> names;
    for (const Type& child : source.shared->type.children) names.emplace_back(child.name());
    Values expected;
    for (const Value& row : source.rows) {
      expected.push_back(row.is_null ? row : items({row.items[2], row.items[0]}));
    }
    ASSERT_EQ(read_values(select_columns(source.open(), {names[2], names[0]})), expected);
    EXPECT_EQ(read_values(select_columns(source.open(), {})).size(), source.rows.size());
  }
}

TEST(SelectColumns, WrongNamesLoseNothing) {
  const DeviceArray one = Builder(1).import(field("l"), numbers({1}));
  const DeviceArray twice = make_struct({"a", "a", "b"}, {one, one, one});
  OwnedStream stream = make_stream(share_schema(twice.export_schema()), {twice});
  const auto choose = [&](std::vector<std::string> names) {
    select_columns(std::move(stream), names);
  };
  expect_error(ErrorKind::kValue, "no column \"c\": the columns are \"a\", \"a\", \"b\"",
               [&] { choose({"c"}); });
  expect_error(ErrorKind::kValue, "several columns", [&] { choose({"a"}); });
  expect_error(ErrorKind::kValue, "twice", [&] { choose({"b", "b"}); });
  EXPECT_EQ(read_lengths(stream), std::vector<int64_t>{1});
  expect_error(ErrorKind::kType, "int64", [&] { select_columns(count_up({1}), {"a"}); });
}

// ---------------------------------------------------------------- rebatch, shuffle, shard

TEST(Rebatch, NoCopyInsideAnArray) {
  const DeviceArray array = Builder(1).import(field("l"), Values(10, number(7)));
  const OwnedStream stream = rebatch(make_stream(share_schema(array.export_schema()), {array}), 4);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream->next().buffer(1), array.buffer(1));
}

TEST(Shuffle, TheOrderIsForAllTime) {
  // Fixed: another machine, compiler or version of arrowdl must give the same order.
  EXPECT_EQ(permute(10, 7), (std::vector<uint32_t>{8, 5, 6, 0, 7, 3, 1, 9, 4, 2}));
  EXPECT_EQ(permute(0, 7), std::vector<uint32_t>{});
  const Values shuffled = read_values(shuffle(count_up({25}), 10, 7));
  EXPECT_EQ(Values(shuffled.begin(), shuffled.begin() + 10),
            select(read_values(count_up({10})), permute(10, 7)));
}

TEST(Shuffle, GoesOnInTheMiddle) {
  const Values whole = read_values(shuffle(count_up({100}), 10, 3));
  OwnedStream later = slice_stream(count_up({100}), 40, 60);
  EXPECT_EQ(read_values(shuffle(std::move(later), 10, 3, 4)),
            Values(whole.begin() + 40, whole.end()));
}

TEST(Shuffle, EveryPlaceIsAsLikely) {
  constexpr int kRounds = 20000;
  constexpr int kRows = 5;
  int counts[kRows][kRows] = {};
  for (uint64_t seed = 0; seed < kRounds; ++seed) {
    const std::vector<uint32_t> order = permute(kRows, seed);
    for (std::size_t i = 0; i < kRows; ++i) ++counts[i][order[i]];
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, kRounds / kRows, 300);  // over 5 deviations
  }
}

TEST(Shard, PartsAreEvenAndPadded) {
  EXPECT_EQ(read_lengths(shard(count_up({7, 2, 0}), 3, 0)), (std::vector<int64_t>{3, 1, 0}));
  EXPECT_EQ(read_lengths(shard(count_up({7, 2, 0}), 3, 2)), (std::vector<int64_t>{2, 0, 0}));
  EXPECT_EQ(read_values(shard(count_up({7, 2, 0}), 3, 2, true)), numbers({5, 6, 8}));
}

TEST(Adaptors, ArgumentsThatMeanNothing) {
  OwnedStream stream = count_up({3});
  const auto expect_value_error = [&](const char* text, const auto& adapt) {
    expect_error(ErrorKind::kValue, text, adapt);
    ASSERT_NE(stream, nullptr) << "a wrong argument loses the stream";
  };
  expect_value_error("batch_size=0", [&] { rebatch(std::move(stream), 0); });
  expect_value_error("buffer_size=0", [&] { shuffle(std::move(stream), 0, 1); });
  expect_value_error("buffer_size=4294967296",
                     [&] { shuffle(std::move(stream), int64_t{1} << 32, 1); });
  expect_value_error("num_shards=2, index=2", [&] { shard(std::move(stream), 2, 2); });
  expect_value_error("index=-1", [&] { shard(std::move(stream), 2, -1); });
  expect_value_error("num_shards=0", [&] { shard(std::move(stream), 0, 0); });
  expect_value_error("count from 0", [&] { slice_stream(std::move(stream), -1, 2); });
  expect_value_error("depth=0", [&] { prefetch(std::move(stream), 0); });
  expect_error(ErrorKind::kValue, "count=-1", [] { permute(-1, 0); });
}

TEST(Adaptors, WhatTheHostCannotReadIsNotMoved) {
  const OwnedSchema schema = field("l");
  const DeviceArray empty = make_empty(share_schema(copy(schema)), Device{kDLMetal, 0});
  OwnedDeviceArray raw = empty.export_device_array();
  raw->array.length = 4;
  static const int64_t kMemory[4] = {};
  const void* buffers[] = {nullptr, kMemory};
  raw->array.buffers = buffers;
  const DeviceArray array = DeviceArray::import(share_schema(copy(schema)), std::move(raw));
  const auto open = [&] { return make_stream(share_schema(copy(schema)), {array, array}); };
  EXPECT_EQ(read_lengths(rebatch(open(), 2)), (std::vector<int64_t>{2, 2, 2, 2}));
  expect_error(ErrorKind::kBuffer, "metal", [&] { read_lengths(rebatch(open(), 5)); });
  expect_error(ErrorKind::kBuffer, "metal", [&] { read_lengths(shuffle(open(), 4, 1)); });
  expect_error(ErrorKind::kBuffer, "metal", [&] { export_stream(open()); });
  EXPECT_EQ(export_device_stream(open())->device_type, kDLMetal);
}

// ---------------------------------------------------------------- interleave

std::vector<OwnedStream> open_several(const std::vector<std::vector<int64_t>>& lengths) {
  std::vector<OwnedStream> streams;
  streams.reserve(lengths.size());
  for (const auto& chunks : lengths) streams.push_back(count_up(chunks));
  return streams;
}

TEST(Interleave, RowsAreInNewMemory) {
  const DeviceArray array = Builder(1).import(field("l"), Values(10, number(7)));
  std::vector<OwnedStream> streams;
  streams.push_back(make_stream(share_schema(array.export_schema()), {array}));
  const OwnedStream stream = interleave(std::move(streams), 20);
  const DeviceArray copy = stream->next();
  EXPECT_EQ(copy.length(), 10);
  EXPECT_NE(copy.buffer(1), array.buffer(1));
  EXPECT_FALSE(stream->next());
}

TEST(Interleave, AnArrayHasManyRounds) {
  const OwnedStream stream = interleave(open_several({{500, 500}, {1000}}), 10);
  const std::vector<int64_t> lengths = read_lengths(stream);
  EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), 2000);
  EXPECT_LT(lengths.size(), 5U) << "one gather for each round is slow";
  const OwnedStream limited = rebatch(interleave(open_several({{1000}, {1000}}), 10), 20);
  for (const int64_t length : read_lengths(limited)) EXPECT_EQ(length, 20);
}

TEST(Interleave, WrongArgumentsLoseNothing) {
  std::vector<OwnedStream> streams = open_several({{3}, {2}});
  const auto expect_value_error = [&](const char* text, int64_t rows, int64_t skip) {
    expect_error(ErrorKind::kValue, text, [&] { interleave(std::move(streams), rows, skip); });
    ASSERT_EQ(streams.size(), 2U);
  };
  expect_value_error("rows=0", 0, 0);
  expect_value_error("skip=-1", 1, -1);
  expect_value_error("rows=9223372036854775807", INT64_MAX, 0);
  expect_error(ErrorKind::kValue, "no streams", [] { interleave({}, 1); });
  streams.push_back(make_stream({Builder(1).import(field("i"), numbers({1}))}));
  expect_error(ErrorKind::kValue, "array 2 is of int32",
               [&] { interleave(std::move(streams), 1); });
  ASSERT_EQ(streams.size(), 3U);
  streams.pop_back();
  EXPECT_EQ(read_values(interleave(std::move(streams), 2)), numbers({0, 1, 0, 1, 2}));
}

// ---------------------------------------------------------------- prefetch

/// Returns one row after another, and can be blocked or fail.
class Gate {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
  }
  void wait_for_a_visitor() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  int waiting_ = 0;
};

class TestStream final : public ArrayStream {
 public:
  using Next = std::function<DeviceArray(int64_t)>;
  explicit TestStream(Next next)
      : ArrayStream(share_schema(field("l")), kDLCPU), next_(std::move(next)) {}
  DeviceArray next(int64_t) override { return next_(position_++); }

 private:
  Next next_;
  int64_t position_ = 0;
};

DeviceArray make_row(int64_t n) { return Builder(1).import(field("l"), numbers({n})); }

OwnedStream generate(TestStream::Next next) {
  return std::make_unique<TestStream>(std::move(next));
}

/// Threads end by themselves: all objects are released within a while.
void expect_objects(int64_t objects) {
  stop_background_reads(20);
  EXPECT_EQ(live_objects(), objects);
}

TEST(Prefetch, ReadsAheadSoFarAndNoFurther) {
  const int64_t objects = live_objects();
  std::atomic<int64_t> made{0};
  {
    const OwnedStream stream = prefetch(generate([&](int64_t i) {
                                          ++made;
                                          return make_row(i);
                                        }),
                                        3);
    EXPECT_EQ(made, 0) << "nothing is read before it is asked for";
    for (int64_t i = 0; i < 50; ++i) {
      ASSERT_EQ(read_rows(stream->next()), numbers({i}));
      ASSERT_LE(made, i + 1 + 3 + 1);  // returned, queued, and being read
    }
  }
  expect_objects(objects);
}

/// 0, 1, 2, … in arrays of 10 rows, which are counted.
OwnedStream count_by_ten(std::atomic<int64_t>* made, int64_t most) {
  return generate([made, most](int64_t i) -> DeviceArray {
    if (i >= most) return {};
    if (made != nullptr) ++*made;
    Values rows;
    for (int64_t row = 0; row < 10; ++row) rows.push_back(number(i * 10 + row));
    return Builder(1).import(field("l"), rows);
  });
}

TEST(Prefetch, SlicesOfOneArrayCountAsOne) {
  const int64_t objects = live_objects();
  for (const int64_t batch : {1, 3, 5, 10, 25}) {
    SCOPED_TRACE(batch);
    std::atomic<int64_t> made{0};
    const OwnedStream stream = prefetch(rebatch(count_by_ten(&made, 40), batch), 2);
    for (int64_t i = 0; i < 400; i += batch) {
      const DeviceArray array = stream->next();
      ASSERT_EQ(read_rows(array).front(), number(i));
      // The rows of this group and of two more, and those that are being read.
      ASSERT_LE(made, (i + 3 * std::max<int64_t>(10, 2 * batch)) / 10 + 3);
    }
    EXPECT_FALSE(stream->next());
    EXPECT_FALSE(stream->next());
  }
  expect_objects(objects);
}

/// A stream that has rows returns them, and asks its source for none.
TEST(Adaptors, RowsThatAreThereAreNotRead) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Builder builder(seed);
    std::atomic<int64_t> made{0};
    OwnedStream stream = count_by_ten(&made, 12);
    for (int64_t i = builder.pick(1, 4); i > 0; --i) {
      const int64_t n = builder.pick(1, 30);
      switch (builder.pick(0, 2)) {
        case 0:
          stream = rebatch(std::move(stream), n, builder.chance(2));
          break;
        case 1:
          stream = shuffle(std::move(stream), n, 1);
          break;
        default:
          stream = slice_stream(std::move(stream), builder.pick(0, 9), 40 + n);
      }
    }
    for (;;) {
      const int64_t rows = builder.pick(1, 12);
      const bool has_rows = stream->has_rows(rows);
      const int64_t before = made;
      const DeviceArray array = stream->next(rows);
      if (has_rows) {
        ASSERT_EQ(made, before);
        ASSERT_TRUE(array);
        ASSERT_GE(array.length(), rows);
      }
      if (!array) break;
    }
  }
}

TEST(Prefetch, FailuresComeInTheirPlaceAndStay) {
  const int64_t objects = live_objects();
  {
    const OwnedStream stream = prefetch(generate([](int64_t i) -> DeviceArray {
                                          if (i == 2)
                                            throw Error(ErrorKind::kRuntime, "disk on fire");
                                          return make_row(i);
                                        }),
                                        5);
    EXPECT_EQ(read_rows(stream->next()), numbers({0}));
    EXPECT_EQ(read_rows(stream->next()), numbers({1}));
    expect_error(ErrorKind::kRuntime, "disk on fire", [&] { stream->next(); });
    expect_error(ErrorKind::kRuntime, "disk on fire", [&] { stream->next(); });
  }
  expect_objects(objects);
}

TEST(Prefetch, SlicesBeforeAFailureAreNotLost) {
  const int64_t objects = live_objects();
  {
    const OwnedStream source =
        prefetch(rebatch(generate([](int64_t i) -> DeviceArray {
                           if (i == 1) {
                             throw Error(ErrorKind::kRuntime, "on fire");
                           }
                           return Builder(1).import(field("l"), numbers({0, 1, 2, 3}));
                         }),
                         2),
                 2);
    EXPECT_EQ(read_rows(source->next()), numbers({0, 1}));
    EXPECT_EQ(read_rows(source->next()), numbers({2, 3}));
    expect_error(ErrorKind::kRuntime, "on fire", [&] { source->next(); });
    expect_error(ErrorKind::kRuntime, "on fire", [&] { source->next(); });
  }
  expect_objects(objects);
}

TEST(Prefetch, ClosingDoesNotWaitForASlowSource) {
  const int64_t objects = live_objects();
  auto gate = std::make_shared<Gate>();
  {
    OwnedStream stream = prefetch(generate([gate](int64_t i) {
                                    if (i == 1) gate->pass();
                                    return make_row(i);
                                  }),
                                  2);
    EXPECT_EQ(read_rows(stream->next()), numbers({0}));
    gate->wait_for_a_visitor();
    stream.reset();  // returns, though the source has not
  }
  EXPECT_GT(live_objects(), objects) << "the source is still the thread's";
  gate->open();
  expect_objects(objects);
}

struct Interrupted {};

TEST(Prefetch, AWaitCanBeInterrupted) {
  const int64_t objects = live_objects();
  auto gate = std::make_shared<Gate>();
  {
    const OwnedStream stream = prefetch(generate([gate](int64_t i) {
                                          gate->pass();
                                          return make_row(i);
                                        }),
                                        2);
    set_interrupt_check([] { throw Interrupted(); });
    EXPECT_THROW(stream->next(), Interrupted);
    set_interrupt_check(nullptr);
    gate->open();
    EXPECT_EQ(read_rows(stream->next()), numbers({0})) << "an interrupt loses nothing";
  }
  expect_objects(objects);
}

TEST(Prefetch, ManyAtOnce) {
  const int64_t objects = live_objects();
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([t] {
      for (int round = 0; round < 25; ++round) {
        const OwnedStream stream =
            prefetch(prefetch(shuffle(count_up({50, 50, 50}), 64, static_cast<uint64_t>(t)), 1), 2);
        int64_t rows = 0;
        while (const DeviceArray array = stream->next()) {
          rows += array.length();
          if (round % 3 == 0) break;  // leaves in the middle
        }
        if (round % 3 != 0) {
          EXPECT_EQ(rows, 150);
        }
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  expect_objects(objects);
}

}  // namespace
}  // namespace arrowdl::testing
