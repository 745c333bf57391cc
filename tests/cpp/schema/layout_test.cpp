// Compares the layout table with nanoarrow's, and tests the sizes that follow from it.
#include "schema/layout.hpp"

#include <gtest/gtest.h>

#include "support/every_type.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

/// Whether two buffers have the same number of elements of the same width.
BufferKind kind_of(const ArrowSchemaView& view, int i) {
  switch (view.layout.buffer_type[i]) {
    case NANOARROW_BUFFER_TYPE_NONE:
      return BufferKind::kAbsent;
    case NANOARROW_BUFFER_TYPE_VALIDITY:
      return BufferKind::kValidity;
    case NANOARROW_BUFFER_TYPE_DATA_OFFSET:
      return BufferKind::kOffsets;
    case NANOARROW_BUFFER_TYPE_DATA:
      if (view.storage_type == NANOARROW_TYPE_BOOL) return BufferKind::kBits;
      return i == 1 ? BufferKind::kElements : BufferKind::kData;
    default:
      return BufferKind::kElements;
  }
}

class LayoutTest : public ::testing::TestWithParam<NamedSchema> {};

void check_node(const Type& type) {
  ArrowSchemaView view;
  ASSERT_EQ(ArrowSchemaViewInit(&view, type.schema, nullptr), NANOARROW_OK);
  const bool is_view = view.storage_type == NANOARROW_TYPE_STRING_VIEW ||
                       view.storage_type == NANOARROW_TYPE_BINARY_VIEW;
  EXPECT_EQ(layout_row(type.layout).is_variadic, is_view);
  for (int i = 0; i < (is_view ? 2 : 3); ++i) {
    const BufferRow row = buffer_row(type, i);
    EXPECT_EQ(row.kind, kind_of(view, i)) << type.schema->format << " buffer " << i;
    if (row.kind == BufferKind::kElements || row.kind == BufferKind::kOffsets) {
      EXPECT_EQ(element_width(type, i) * 8, view.layout.element_size_bits[i])
          << type.schema->format << " buffer " << i;
    }
  }
  for (const Type& child : type.children) check_node(child);
}

TEST_P(LayoutTest, IsThatOfNanoarrow) {
  const OwnedSchema schema = GetParam().make();
  check_node(parse_schema(*schema.get()));
}

INSTANTIATE_TEST_SUITE_P(EveryType, LayoutTest, ::testing::ValuesIn(every_type()),
                         [](const auto& info) { return info.param.name; });

TEST(Layout, FixedWidthsAreThoseOfNanoarrow) {
  for (const char* format :
       {"c",   "S",   "i",   "L",   "e",   "f",       "g",   "d:9,2", "d:9,2,256", "d:9,2,32",
        "w:3", "tdD", "tdm", "tts", "ttn", "tsu:UTC", "tDm", "tiM",   "tiD",       "tin"}) {
    const OwnedSchema schema = field(format);
    check_node(parse_schema(*schema.get()));
  }
}

TEST(Layout, SizesOfBuffers) {
  const auto sizes = [](const char* format, int64_t rows) {
    const OwnedSchema schema = make_nested_schema(format, {});
    const Type type = parse_schema(*schema.get());
    return std::vector<int64_t>{buffer_size(type, 0, rows), buffer_size(type, 1, rows),
                                buffer_size(type, 2, rows)};
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes("b", 9), (Sizes{2, 2, 0}));
  EXPECT_EQ(sizes("w:3", 9), (Sizes{2, 27, 0}));
  EXPECT_EQ(sizes("u", 9), (Sizes{2, 40, 0}));
  EXPECT_EQ(sizes("Z", 0), (Sizes{0, 0, 0}));
  EXPECT_EQ(sizes("vu", 2), (Sizes{1, 32, 0}));
}

TEST(Layout, SizesThatOverflowAreSeen) {
  const OwnedSchema schema = make_nested_schema("U", {});
  const Type type = parse_schema(*schema.get());
  int64_t size = 0;
  EXPECT_FALSE(checked_buffer_size(type, 1, INT64_MAX, &size));
  EXPECT_FALSE(checked_buffer_size(type, 1, INT64_MAX / 8, &size));
  EXPECT_TRUE(checked_buffer_size(type, 1, INT64_MAX / 8 - 1, &size));
}

TEST(Layout, OffsetsOfRows) {
  const OwnedSchema schema = make_nested_schema("i", {});
  const Type type = parse_schema(*schema.get());
  EXPECT_EQ(byte_offset(type, 0, 24), 3);
  EXPECT_EQ(byte_offset(type, 1, 24), 96);
}

}  // namespace
}  // namespace arrowdl::testing
