// Tests record batches that are moved to another mapping of their memory.
#include "compute/relocate.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/sample_arrays.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

constexpr int64_t kSize = 64;

/// 64 bytes, each its own index, in place of a mapped file.
DeviceArray make_block() {
  std::vector<uint8_t> bytes(kSize);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return primitive("uint8", bytes, {kSize}).import();
}

const uint8_t* start_of(const DeviceArray& block) { return block.buffer_as<uint8_t>(1); }

/// `length` bytes of `block` from `start` on.
Buffer part(const DeviceArray& block, int64_t start, int64_t length) {
  return Buffer(block.storage(), start_of(block) + start, length);
}

/// Numbers, pairs of bytes and texts in `block`, and numbers in other memory.
DeviceArray make_batch(const DeviceArray& block) {
  Sample numbers = sample(make_schema(*find_dtype("uint8"), "numbers"), {4, "1011"},
                          {bits("1011"), part(block, 8, 4)});
  Sample flat = sample(make_schema(*find_dtype("uint8"), "item"), {8}, {{}, part(block, 16, 8)});
  Sample pairs = nest("+w:2", samples(std::move(flat)), {4}, "pairs");
  Sample texts = sample(make_nested_schema("z", {}, "texts"), {4},
                        {{}, share(std::vector<int32_t>{0, 1, 1, 3, 4}), part(block, 32, 4)});
  Sample others = primitive<uint8_t>("uint8", {1, 2, 3, 4}, {4}, "others");
  return nest("+s",
              samples(std::move(numbers), std::move(pairs), std::move(texts), std::move(others)),
              {4})
      .import();
}

TEST(Relocate, TakesElementsFromTheBlock) {
  const DeviceArray first = make_block();
  const DeviceArray second = make_block();
  const DeviceArray batch = make_batch(first);
  const DeviceArray moved = relocate(batch, start_of(first), second);
  EXPECT_EQ(read_rows(moved), read_rows(batch));
  EXPECT_EQ(moved.child(0).buffer(1), start_of(second) + 8);
  EXPECT_EQ(moved.child(0).validity(), batch.child(0).validity());
  EXPECT_EQ(moved.child(0).null_count(), 1);
  EXPECT_EQ(moved.child(1).child(0).buffer(1), start_of(second) + 16);
  EXPECT_EQ(moved.child(2).buffer(2), start_of(second) + 32);
  EXPECT_EQ(moved.child(2).buffer(1), batch.child(2).buffer(1)) << "no tensor shares offsets";
  EXPECT_NE(moved.child(3).buffer(1), batch.child(3).buffer(1)) << "copied";
}

TEST(Relocate, TakesAWindow) {
  const DeviceArray first = make_block();
  const DeviceArray second = make_block();
  const DeviceArray window = make_batch(first).slice(1, 2);
  const DeviceArray moved = relocate(window, start_of(first), second);
  EXPECT_EQ(read_rows(moved), read_rows(window));
  EXPECT_EQ(moved.child(0).null_count(), 1);
  EXPECT_EQ(read_rows(relocate(window.slice(0, 0), start_of(first), second)), Values{});
}

TEST(Relocate, CopiesWhatLiesElsewhere) {
  const DeviceArray first = make_block();
  const DeviceArray batch = make_batch(first);
  const DeviceArray short_block = make_block().slice(0, 20);  // ends within the pairs
  const DeviceArray moved = relocate(batch, start_of(first), short_block);
  EXPECT_EQ(read_rows(moved), read_rows(batch));
  EXPECT_EQ(moved.child(0).buffer(1), start_of(short_block) + 8);
  for (const uint8_t* from : {start_of(first), start_of(short_block)}) {
    EXPECT_NE(moved.child(1).child(0).buffer(1), from + 16);
    EXPECT_NE(moved.child(2).buffer(2), from + 32);
  }
  const DeviceArray copied = relocate(batch, start_of(first), make_block().slice(0, 0));
  EXPECT_EQ(read_rows(copied), read_rows(batch));
  for (int64_t i : {0, 3}) EXPECT_NE(copied.child(i).buffer(1), batch.child(i).buffer(1));
}

TEST(Relocate, KeepsBothMemories) {
  const int64_t before = live_objects();
  {
    DeviceArray moved;
    {
      const DeviceArray first = make_block();
      moved = relocate(make_batch(first), start_of(first), make_block());
    }
    EXPECT_EQ(read_rows(moved.child(0)), (Values{number(8), null(), number(10), number(11)}));
    // A child may be moved out of the exported array, and outlive it.
    OwnedArray exported = moved.export_array();
    moved = DeviceArray();
    OwnedArray child;
    ArrowArrayMove(exported->children[0], child.get());
    exported.reset();
    EXPECT_EQ(static_cast<const uint8_t*>(child->buffers[1])[2], 10);
  }
  EXPECT_EQ(live_objects(), before);
}

TEST(Relocate, RefusesWhatIsNoRecordBatch) {
  const DeviceArray block = make_block();
  const DeviceArray numbers = primitive<int32_t>("int32", {1, 2}, {2}).import();
  const DeviceArray nulls =
      nest("+s", samples(primitive<int32_t>("int32", {1, 2}, {2}, "a")), {2, "10"}).import();
  const auto relocating = [&](const DeviceArray& array, const DeviceArray& to) {
    return [=] { relocate(array, start_of(block), to); };
  };
  expect_error(ErrorKind::kType, "a record batch can be relocated, not int32",
               relocating(numbers, block));
  expect_error(ErrorKind::kType, "a record batch can be relocated", relocating(nulls, block));
  expect_error(ErrorKind::kType, "a block is an array of bytes, not of int32",
               relocating(make_batch(block), numbers));
}

}  // namespace
}  // namespace arrowdl::testing
