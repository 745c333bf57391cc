// Tests tensors as Arrow arrays.
#include "arrowdl/to_arrow.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/producer.hpp"

namespace arrowdl::testing {
namespace {

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
  producer.managed.dl_tensor.dtype = {kDLFloat6_e2m3fn, 6, 1};
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

}  // namespace
}  // namespace arrowdl::testing
