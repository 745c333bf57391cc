#include <gtest/gtest.h>

#include <numeric>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_arrow.hpp"
#include "arrowdl/to_dlpack.hpp"

namespace arrowdl {
namespace {

/// A float32 tensor over `values` with the given shape and strides, that counts its deletions.
struct Producer {
  std::vector<float> values;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  DLManagedTensorVersioned managed{};
  int deletions = 0;

  Producer(std::vector<int64_t> extents, std::vector<int64_t> steps, std::size_t size)
      : values(size), shape(std::move(extents)), strides(std::move(steps)) {
    std::iota(values.begin(), values.end(), 0.0F);
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Producer*>(self->manager_ctx)->deletions;
    };
    managed.dl_tensor = {values.data(),
                         {kDLCPU, 0},
                         static_cast<int32_t>(shape.size()),
                         {kDLFloat, 32, 1},
                         shape.data(),
                         strides.data(),
                         0};
  }

  OwnedTensor take() { return OwnedTensor(&managed); }
};

TEST(ToArrow, KeepsTheTensorUntilTheArrayIsGone) {
  Producer producer({6}, {1}, 6);
  {
    const DeviceArray array = to_arrow(producer.take());
    EXPECT_EQ(array.buffer(1), producer.values.data());
    EXPECT_EQ(array.length(), 6);
    EXPECT_EQ(producer.deletions, 0);
  }
  EXPECT_EQ(producer.deletions, 1);
}

TEST(ToArrow, ReleasesTheTensorThatItRefuses) {
  Producer producer({6}, {1}, 6);
  producer.managed.dl_tensor.dtype = {kDLFloat4_e2m1fn, 4, 1};
  EXPECT_THROW(to_arrow(producer.take()), Error);
  EXPECT_EQ(producer.deletions, 1);
}

TEST(ToArrow, APermutedImageKeepsItsMemory) {
  Producer producer({2, 3, 4, 5}, {60, 1, 15, 3}, 120);  // channels last
  const DeviceArray array = to_arrow(producer.take());
  EXPECT_EQ(array.child(0).buffer(1), producer.values.data());
  EXPECT_EQ(array.type().tensor->shape, (std::vector<int64_t>{4, 5, 3}));
  EXPECT_EQ(array.type().tensor->permutation, (std::vector<int64_t>{2, 0, 1}));
  const OwnedTensor back = to_dlpack(array);
  EXPECT_EQ(std::vector<int64_t>(back->shape, back->shape + 4), producer.shape);
  EXPECT_EQ(std::vector<int64_t>(back->strides, back->strides + 4), producer.strides);
  EXPECT_EQ(back->data, producer.values.data());
}

TEST(ToArrow, StridedRowsAreCopiedOnlyWithLeave) {
  Producer refused({3, 2}, {4, 1}, 12);
  EXPECT_THROW(to_arrow(refused.take(), {Copy::kNever}), Error);
  EXPECT_EQ(refused.deletions, 1);
  Producer copied({3, 2}, {4, 1}, 12);
  const DeviceArray array = to_arrow(copied.take());
  EXPECT_EQ(copied.deletions, 1);
  const auto* values = array.child(0).buffer_as<float>(1);
  EXPECT_EQ(std::vector<float>(values, values + 6), (std::vector<float>{0, 1, 4, 5, 8, 9}));
}

TEST(ToDlpack, IsReadOnlyWhenSharedAndMarkedWhenCopied) {
  Producer producer({6}, {1}, 6);
  const DeviceArray array = to_arrow(producer.take());
  const OwnedTensor shared = to_dlpack(array);
  EXPECT_EQ(shared.flags(), DLPACK_FLAG_BITMASK_READ_ONLY);
  EXPECT_EQ(shared->data, producer.values.data());
  const OwnedTensor copied = to_dlpack(array, {Copy::kAlways});
  EXPECT_EQ(copied.flags(), DLPACK_FLAG_BITMASK_IS_COPIED);
  EXPECT_NE(copied->data, producer.values.data());
}

TEST(ToDlpack, SlicesMoveThePointerAndNotTheByteOffset) {
  Producer producer({6}, {1}, 6);
  const OwnedTensor tensor = to_dlpack(to_arrow(producer.take()).slice(2, 3));
  EXPECT_EQ(tensor->data, producer.values.data() + 2);
  EXPECT_EQ(tensor->byte_offset, 0U);
}

TEST(ToDlpack, ALegacyTensorOwnsAsWell) {
  Producer producer({2, 3}, {3, 1}, 6);
  OwnedTensor tensor;
  {
    tensor = to_legacy_dlpack(to_arrow(producer.take()));
  }
  EXPECT_EQ(producer.deletions, 0);
  EXPECT_EQ(tensor.versioned(), nullptr);
  EXPECT_EQ(tensor->ndim, 2);
  tensor.reset();
  EXPECT_EQ(producer.deletions, 1);
}

TEST(ToDlpack, AnEmptyTensorHasNoData) {
  Producer producer({0, 3}, {3, 1}, 1);
  const OwnedTensor tensor = to_dlpack(to_arrow(producer.take()));
  EXPECT_EQ(tensor->data, nullptr);
  EXPECT_EQ(tensor->shape[0], 0);
  EXPECT_EQ(tensor->shape[1], 3);
}

TEST(MakeStruct, NamesTheFieldThatDiffers) {
  Producer two({2}, {1}, 2);
  Producer three({3}, {1}, 3);
  try {
    make_struct({"a", "b"}, {to_arrow(two.take()), to_arrow(three.take())});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"b\" has 3 rows"), std::string::npos);
  }
}

}  // namespace
}  // namespace arrowdl
