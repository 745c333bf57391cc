// Tests that owners release their C structs once.
#include "arrowdl/owned.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "support/expect_error.hpp"

namespace arrowdl {
namespace {

template <typename Managed>
struct CountedTensor {
  CountedTensor() {
    managed.manager_ctx = &deletions;
    managed.deleter = [](Managed* self) noexcept { ++*static_cast<int*>(self->manager_ctx); };
  }
  Managed managed{};
  int deletions = 0;
};

template <typename Managed>
void expect_one_deletion() {
  CountedTensor<Managed> counted;
  {
    OwnedTensor first(&counted.managed);
    OwnedTensor second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(second);
    EXPECT_EQ(&*second, &counted.managed.dl_tensor);
    first = std::move(second);
    EXPECT_EQ(counted.deletions, 0);
  }
  EXPECT_EQ(counted.deletions, 1);
}

TEST(OwnedTensor, DeletesOnce) {
  expect_one_deletion<DLManagedTensor>();
  expect_one_deletion<DLManagedTensorVersioned>();
}

TEST(OwnedTensor, ATakenTensorIsTheCallers) {
  CountedTensor<DLManagedTensorVersioned> counted;
  counted.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  OwnedTensor tensor(&counted.managed);
  EXPECT_EQ(tensor.flags(), DLPACK_FLAG_BITMASK_READ_ONLY);
  EXPECT_EQ(tensor.take_legacy(), nullptr);
  EXPECT_EQ(tensor.take_versioned(), &counted.managed);
  EXPECT_FALSE(tensor);
  EXPECT_EQ(counted.deletions, 0);
}

TEST(OwnedTensor, ADeleterMayBeNull) {
  DLManagedTensor managed{};
  OwnedTensor tensor(&managed);
  tensor.reset();
  EXPECT_FALSE(tensor);
}

TEST(Buffer, SharesAlignedMemory) {
  const int64_t before = live_objects();
  {
    uint8_t* writable = nullptr;
    const Buffer buffer = Buffer::allocate(100, &writable);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(writable) % 64, 0U);
    EXPECT_EQ(buffer.data(), writable);
    const Buffer shared = buffer;
    EXPECT_EQ(shared.data(), writable);
    EXPECT_EQ(shared.size(), 100);
    EXPECT_EQ(live_objects(), before + 1);
  }
  EXPECT_EQ(live_objects(), before);
  uint8_t* writable = nullptr;
  testing::expect_error(ErrorKind::kMemory, "-1 bytes", [&] { Buffer::allocate(-1, &writable); });
}

TEST(MakeArray, KeepsItsPartsUntilTheRelease) {
  const int64_t before = live_objects();
  uint8_t* writable = nullptr;
  ArrayParts parts;
  parts.length = 2;
  parts.null_count = 0;
  parts.buffers = {Buffer(), Buffer::allocate(2, &writable)};
  OwnedArray array = make_array(std::move(parts));
  EXPECT_EQ(array->length, 2);
  EXPECT_EQ(array->n_buffers, 2);
  EXPECT_EQ(array->buffers[0], nullptr);
  EXPECT_EQ(array->buffers[1], writable);
  EXPECT_EQ(array->dictionary, nullptr);
  EXPECT_EQ(live_objects(), before + 2);
  array.reset();
  EXPECT_EQ(live_objects(), before);
}

}  // namespace
}  // namespace arrowdl
