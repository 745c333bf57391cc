// Tests Arrow arrays as tensors.
#include "arrowdl/to_dlpack.hpp"

#include <gtest/gtest.h>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_arrow.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/producer.hpp"
#include "support/values.hpp"

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

TEST(ToDlpack, PlainFieldsAreSharedAsTheyAre) {
  for (const NamedSchema& named : every_type()) {
    SCOPED_TRACE(named.name);
    Builder builder(1);
    const OwnedSchema schema = named.make();
    const Values rows = builder.make_values(parse_schema(*schema.get()), 9);
    const DeviceArray array = make_struct({"x"}, {builder.import(schema, rows)}).slice(2, 5);
    const OwnedTensor shared = share_plain_field(array, 0);
    const DeviceArray child = array.field(0);
    bool is_plain = child.type().is_plain() && child.validity() == nullptr;
    if (child.type().dictionary != nullptr) {  // of unions, whether a value is null is not known
      const DeviceArray values = child.dictionary();
      is_plain = is_plain && values.type().has_validity() && values.validity() == nullptr;
    }
    ASSERT_EQ(static_cast<bool>(shared), is_plain);
    EXPECT_EQ(share_plain_field(array.slice(1, 0), 0).versioned(), nullptr);
    if (!is_plain) continue;
    const OwnedTensor expected = to_dlpack(child);
    EXPECT_EQ(shared->data, expected->data);
    EXPECT_EQ(shared->shape[0], expected->shape[0]);
    EXPECT_EQ(shared->strides[0], expected->strides[0]);
    EXPECT_EQ(shared->dtype.code, expected->dtype.code);
    EXPECT_EQ(shared->dtype.bits, expected->dtype.bits);
    EXPECT_EQ(shared.flags(), expected.flags());
  }
}

TEST(ToDlpack, FieldsOfNullRowsAreNotPlain) {
  const OwnedSchema schema = field("+s", field("l"));
  const Type type = parse_schema(*schema.get());
  int64_t checked = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Builder builder(seed);
    const DeviceArray array = builder.import(schema, builder.make_values(type, 9));
    if (array.validity() == nullptr) continue;
    EXPECT_EQ(share_plain_field(array, 0).versioned(), nullptr);
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace arrowdl::testing
