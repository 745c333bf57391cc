// Tests the changes of exports to the buffers of an array.
#include "array/export_tree.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "arrowdl/schema.hpp"

namespace arrowdl {
namespace {

TEST(TidyForExport, KeepsTheOtherBuffersOfAnEmptyArrayWithoutOffsets) {
  const OwnedSchema schema = make_nested_schema("u", {});
  const Type type = parse_schema(*schema.get());
  const char data[] = "data";
  const void* buffers[3] = {nullptr, nullptr, data};
  ArrowArray source = {};
  source.n_buffers = 3;
  source.buffers = buffers;
  OwnedArray shared;
  share_tree(source, std::make_shared<int>(), shared.get());
  tidy_for_export(type, shared.get());
  ASSERT_EQ(shared->n_buffers, 3);
  EXPECT_EQ(shared->buffers[0], nullptr);
  ASSERT_NE(shared->buffers[1], nullptr);
  EXPECT_EQ(*static_cast<const int32_t*>(shared->buffers[1]), 0);
  EXPECT_EQ(shared->buffers[2], data);
}

}  // namespace
}  // namespace arrowdl
