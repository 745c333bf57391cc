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

TEST(MoveOffsetsDown, CopiesTheBitsOfValidityThatBeginInAByte) {
  std::vector<OwnedSchema> item;
  item.push_back(make_nested_schema("i", {}, "item"));
  const OwnedSchema schema = make_nested_schema("+w:2", std::move(item));
  const Type type = parse_schema(*schema.get());
  const int32_t values[40] = {};
  const void* value_buffers[2] = {nullptr, values};
  const uint8_t bits[3] = {0b10110010, 0b00000101, 0};
  const void* buffers[1] = {bits};
  ArrowArray items = {};
  items.length = 40;
  items.n_buffers = 2;
  items.buffers = value_buffers;
  ArrowArray* children[1] = {&items};
  ArrowArray source = {};
  source.n_buffers = 1;
  source.buffers = buffers;
  source.n_children = 1;
  source.children = children;
  for (const int64_t offset : {0, 3, 8}) {
    source.offset = offset;
    source.length = 6;
    OwnedArray shared;
    share_tree(source, std::make_shared<int>(), shared.get());
    move_offsets_down(type, shared.get());
    EXPECT_EQ(shared->offset, 0);
    EXPECT_EQ(shared->length, 6);
    EXPECT_EQ(shared->children[0]->offset, 2 * offset);
    EXPECT_EQ(shared->children[0]->length, 12);
    const auto* validity = static_cast<const uint8_t*>(shared->buffers[0]);
    EXPECT_EQ(validity == bits + offset / 8, offset != 3);
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(validity[0] >> i & 1, bits[(offset + i) / 8] >> (offset + i) % 8 & 1);
    }
  }
}

TEST(MoveOffsetsDown, LeavesStructsWithABitmapAndUnionsWithoutTypeCodes) {
  std::vector<OwnedSchema> fields;
  fields.push_back(make_nested_schema("+us:", {}, "u"));
  const OwnedSchema schema = make_nested_schema("+s", std::move(fields));
  const Type type = parse_schema(*schema.get());
  const int8_t codes[4] = {};
  const uint8_t bits = 0b1101;
  const void* code_buffers[1] = {codes};
  const void* buffers[1] = {&bits};
  ArrowArray codes_of = {};
  codes_of.offset = 1;
  codes_of.length = 3;
  codes_of.n_buffers = 1;
  codes_of.buffers = code_buffers;
  ArrowArray* children[1] = {&codes_of};
  ArrowArray source = {};
  source.offset = 1;
  source.length = 2;
  source.n_buffers = 1;
  source.buffers = buffers;
  source.n_children = 1;
  source.children = children;
  for (const int64_t null_count : {-1, 1, 0}) {
    source.null_count = null_count;
    OwnedArray shared;
    share_tree(source, std::make_shared<int>(), shared.get());
    move_offsets_down(type, shared.get());
    EXPECT_EQ(shared->offset, null_count == 0 ? 0 : 1);
    EXPECT_EQ(shared->buffers[0], null_count == 0 ? nullptr : &bits);
    EXPECT_EQ(shared->children[0]->offset, 0);
    EXPECT_EQ(shared->children[0]->buffers[0], codes + (null_count == 0 ? 2 : 1));
  }
  codes_of.length = source.length = source.offset = 0;
  code_buffers[0] = nullptr;
  OwnedArray shared;
  share_tree(source, std::make_shared<int>(), shared.get());
  move_offsets_down(type, shared.get());
  EXPECT_EQ(shared->children[0]->buffers[0], nullptr);
}

}  // namespace
}  // namespace arrowdl
