// Tests the parsing of schemas, and the refusal of malformed ones.
#include <gtest/gtest.h>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"
#include "schema/make_schema.hpp"
#include "support/expect_error.hpp"

namespace arrowdl {
namespace {

using testing::expect_error;

OwnedSchema plain(const char* format, const char* name = "") {
  return make_nested_schema(format, {}, name);
}

OwnedSchema nest(const char* format, OwnedSchema child, const char* name = "") {
  std::vector<OwnedSchema> children;
  children.push_back(std::move(child));
  return make_nested_schema(format, std::move(children), name);
}

void expect_refused(const OwnedSchema& schema, const char* part) {
  expect_error(ErrorKind::kValue, part, [&] { parse_schema(*schema.get()); });
}

TEST(ParseSchema, Primitives) {
  const OwnedSchema schema = plain("tsu:UTC", "at");
  const Type type = parse_schema(*schema.get());
  EXPECT_EQ(type.layout, Layout::kFixedWidth);
  EXPECT_EQ(type.byte_width, 8);
  EXPECT_STREQ(type.dtype->name, "int64");
  EXPECT_STREQ(type.name(), "at");
  EXPECT_TRUE(type.is_nullable());
  EXPECT_EQ(type.buffer_count(), 2);
  EXPECT_TRUE(type.has_validity());
  EXPECT_EQ(to_string(type), "timestamp[us, UTC]");
}

TEST(ParseSchema, NestedTypes) {
  const OwnedSchema schema = nest("+s", nest("+w:3", plain("f", "item"), "vec"));
  const Type type = parse_schema(*schema.get());
  ASSERT_EQ(type.children.size(), 1U);
  EXPECT_EQ(type.children[0].layout, Layout::kFixedSizeList);
  EXPECT_EQ(type.children[0].list_size, 3);
  EXPECT_EQ(to_string(type), "struct<vec: fixed_size_list<float32>[3]>");
}

TEST(ParseSchema, EveryDtypeIsReadAgain) {
  for (const Dtype& dtype : Dtypes()) {
    const OwnedSchema schema = make_schema(dtype, "x");
    const Type type = parse_schema(*schema.get());
    EXPECT_EQ(type.dtype, &dtype) << dtype.name;
    EXPECT_EQ(type.extension == Extension::kDtype, dtype.extension != nullptr) << dtype.name;
  }
}

TEST(ParseSchema, NamesBinaryTypes) {
  const std::pair<const char*, const char*> names[] = {
      {"u", "string"},       {"z", "binary"},       {"U", "large_string"},
      {"Z", "large_binary"}, {"vu", "string_view"}, {"vz", "binary_view"},
  };
  for (const auto& [format, name] : names) {
    const OwnedSchema schema = plain(format);
    EXPECT_EQ(to_string(parse_schema(*schema.get())), name);
  }
}

TEST(ParseSchema, RefusesMalformedSchemas) {
  expect_refused(OwnedSchema(), "released");
  expect_refused(plain("w:-1"), "fixed size binary");
  expect_refused(nest("+w:2147483648", plain("i")), "no size between 0 and 2147483647");
  expect_refused(plain("+l"), "0 children");
  expect_refused(plain("+w:2"), "with 0 children");
  expect_refused(nest("i", plain("i")), "with 1 children");
  expect_refused(nest("+us:0,0", plain("i")), "type_ids");
  expect_refused(nest("+s", nest("+l", plain("?", "item"), "rows"), "table"),
                 "at table > rows > item");
}

TEST(ParseSchema, RefusesTypesThatNestTooDeep) {
  OwnedSchema schema = plain("i");
  for (int i = 0; i < kMaxDepth; ++i) schema = nest("+l", std::move(schema));
  expect_refused(schema, "nested more than 64 levels deep");
}

TEST(ShareSchema, ReleasesWhatItRefuses) {
  static int released = 0;
  const Releaser count = [](OwnedSchema* schema, OwnedDeviceArray*) noexcept {
    ++released;
    schema->reset();
  };
  expect_error(ErrorKind::kValue, "children", [&] { share_schema(plain("+l"), count); });
  EXPECT_EQ(released, 1);
}

TEST(CopySchema, IsIndependentOfItsSource) {
  OwnedSchema schema = make_fixed_shape_tensor_schema(make_schema(*find_dtype("float32"), "item"),
                                                      TensorMetadata{{2, 3}, {}, {}, {}}, "t");
  const OwnedSchema copy = copy_schema(*schema.get());
  schema.reset();
  const Type type = parse_schema(*copy.get());
  EXPECT_EQ(type.extension, Extension::kFixedShapeTensor);
  EXPECT_EQ(type.tensor->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(find_metadata(*copy.get(), kExtensionNameKey), kFixedShapeTensorName);
}

TEST(RenameSchema, KeepsTheRest) {
  const OwnedSchema renamed = rename_schema(make_schema(*find_dtype("bfloat16"), "a"), "b");
  const Type type = parse_schema(*renamed.get());
  EXPECT_STREQ(type.name(), "b");
  EXPECT_STREQ(type.dtype->name, "bfloat16");
}

}  // namespace
}  // namespace arrowdl
