// Tests Arrow arrays as tensors.
#include "arrowdl/to_dlpack.hpp"

#include <gtest/gtest.h>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_arrow.hpp"
#include "support/producer.hpp"

namespace arrowdl::testing {
namespace {

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

}  // namespace
}  // namespace arrowdl::testing
