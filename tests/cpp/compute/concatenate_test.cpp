// Tests concatenation of every layout.
#include "arrowdl/concatenate.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

class ConcatenateTest : public ::testing::TestWithParam<NamedSchema> {
 protected:
  void SetUp() override { objects_ = live_objects(); }
  void TearDown() override { EXPECT_EQ(live_objects(), objects_); }

 private:
  int64_t objects_ = 0;
};

/// Rows of several chunks, which are slices of any arrays, follow one another.
TEST_P(ConcatenateTest, RowsOfAllChunks) {
  const OwnedSchema schema = GetParam().make();
  const Type type = parse_schema(*schema.get());
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Builder builder(seed);
    std::vector<DeviceArray> chunks;
    Values expected;
    for (int64_t i = builder.pick(1, 4); i > 0; --i) {
      const Values rows = builder.make_values(type, builder.chance(5) ? 0 : builder.pick(0, 9));
      chunks.push_back(builder.import(schema, rows));
      ASSERT_EQ(read_rows(chunks.back()), rows) << "the test's own builder or reader is wrong";
      expected.insert(expected.end(), rows.begin(), rows.end());
    }
    const DeviceArray whole = concatenate(chunks);
    chunks.clear();
    ASSERT_EQ(read_rows(whole), expected);
    if (type.has_validity() && type.dictionary == nullptr) {
      const auto nulls = std::count_if(expected.begin(), expected.end(),
                                       [](const Value& value) { return value.is_null; });
      ASSERT_EQ(whole.null_count(), nulls);
    }
  }
}

/// The same array many times over, in slices of a slice.
TEST_P(ConcatenateTest, SlicesOfOneArray) {
  const OwnedSchema schema = GetParam().make();
  const Type type = parse_schema(*schema.get());
  Builder builder(7);
  const Values rows = builder.make_values(type, 40);
  const DeviceArray array = builder.import(schema, rows);
  std::vector<DeviceArray> slices;
  Values expected;
  for (int i = 0; i < 20; ++i) {
    const int64_t start = builder.pick(0, 40);
    const int64_t length = builder.pick(0, 40 - start);
    slices.push_back(array.slice(start, length));
    expected.insert(expected.end(), rows.begin() + start, rows.begin() + start + length);
  }
  EXPECT_EQ(read_rows(concatenate(slices)), expected);
}

TEST_P(ConcatenateTest, NothingButEmptyChunks) {
  const OwnedSchema schema = GetParam().make();
  Builder builder(1);
  const DeviceArray whole = concatenate({builder.import(schema, {}), builder.import(schema, {})});
  EXPECT_EQ(whole.length(), 0);
  EXPECT_STREQ(whole.type().schema->format, schema->format);
}

INSTANTIATE_TEST_SUITE_P(EveryType, ConcatenateTest, ::testing::ValuesIn(every_type()),
                         [](const auto& info) { return info.param.name; });

DeviceArray import(const OwnedSchema& schema, const Values& rows, unsigned seed = 3) {
  return Builder(seed).import(schema, rows);
}

TEST(Concatenate, OneArrayComesBackAsItIs) {
  const DeviceArray array = import(field("i"), numbers({1, 2}));
  EXPECT_EQ(concatenate({array}).buffer(1), array.buffer(1));
}

TEST(Concatenate, EmptyChunksCostNoCopy) {
  const OwnedSchema schema = field("i");
  const DeviceArray rows = import(schema, numbers({1, 2}));
  const DeviceArray whole = concatenate({import(schema, {}), rows, import(schema, {})});
  EXPECT_EQ(whole.buffer(1), rows.buffer(1));
}

TEST(Concatenate, NothingIsAnError) {
  expect_error(ErrorKind::kValue, "pass at least one", [] { concatenate({}); });
}

TEST(Concatenate, TypesThatDifferAreNamed) {
  const OwnedSchema ints = field("+s", field("+l", field("i")));
  const OwnedSchema longs = field("+s", field("+l", field("l")));
  const Values rows{items({items(numbers({1}))})};
  expect_error(ErrorKind::kValue, "field 'a.a': int64 and int32",
               [&] { concatenate({import(ints, rows), import(longs, rows)}); });
  expect_error(ErrorKind::kValue, "their type", [&] {
    concatenate({import(field("i"), numbers({1})), import(field("f"), numbers({1}))});
  });
}

TEST(Concatenate, NamesOfFieldsMatterAndThoseOfItemsDoNot) {
  const auto make = [](const char* format, const char* name) {
    std::vector<OwnedSchema> children;
    children.push_back(rename_schema(field("i"), name));
    return make_nested_schema(format, std::move(children));
  };
  const Values rows{items(numbers({1}))};
  EXPECT_EQ(
      concatenate({import(make("+l", "item"), rows), import(make("+l", "element"), rows)}).length(),
      2);
  expect_error(ErrorKind::kValue, "named 'y' and 'x'", [&] {
    concatenate({import(make("+s", "x"), rows), import(make("+s", "y"), rows)});
  });
}

OwnedSchema with_extension(OwnedSchema schema, const char* name, const char* metadata) {
  nanoarrow::UniqueBuffer buffer;
  ArrowMetadataBuilderInit(buffer.get(), nullptr);
  ArrowMetadataBuilderAppend(buffer.get(), ArrowCharView("ARROW:extension:name"),
                             ArrowCharView(name));
  ArrowMetadataBuilderAppend(buffer.get(), ArrowCharView("ARROW:extension:metadata"),
                             ArrowCharView(metadata));
  ArrowSchemaSetMetadata(schema.get(), reinterpret_cast<const char*>(buffer->data));
  return schema;
}

TEST(Concatenate, ExtensionsAreKeptAndCompared) {
  const OwnedSchema uuid = with_extension(field("w:3"), "test.id", "v1");
  const DeviceArray whole = concatenate({import(uuid, numbers({1})), import(uuid, numbers({2}))});
  EXPECT_EQ(find_metadata(*whole.type().schema, "ARROW:extension:name"), "test.id");
  expect_error(ErrorKind::kValue, "ARROW:extension:name is absent and test.id", [&] {
    concatenate({import(uuid, numbers({1})), import(field("w:3"), numbers({2}))});
  });
  expect_error(ErrorKind::kValue, "ARROW:extension:metadata is v2 and v1", [&] {
    concatenate({import(uuid, numbers({1})),
                 import(with_extension(field("w:3"), "test.id", "v2"), numbers({2}))});
  });
}

TEST(Concatenate, NullableWhereAnyChunkIs) {
  const OwnedSchema always = required(field("i"));
  const DeviceArray whole =
      concatenate({import(always, {}), import(field("i"), {}), import(always, numbers({1}), 1)});
  EXPECT_TRUE(whole.type().is_nullable());
}

TEST(Concatenate, KeysStaySortedOnlyWhereAllAre) {
  const OwnedSchema plain = map(field("u"), field("i"));
  OwnedSchema sorted = copy(plain);
  sorted->flags |= ARROW_FLAG_MAP_KEYS_SORTED;
  const auto flags = [](const DeviceArray& array) {
    return array.type().schema->flags & ARROW_FLAG_MAP_KEYS_SORTED;
  };
  const Values rows{items({})};
  EXPECT_NE(flags(concatenate({import(sorted, rows), import(sorted, rows)})), 0);
  EXPECT_EQ(flags(concatenate({import(sorted, rows), import(plain, rows)})), 0);
}

/// A binary or list array of one row with `size` values, whose memory is missing.
DeviceArray claim(OwnedSchema schema, int32_t size) {
  ArrayParts parts;
  parts.length = 1;
  parts.buffers = {Buffer(), exact(std::vector<int32_t>{0, size})};
  if (schema->n_children == 0) {
    parts.buffers.push_back(exact(std::string()));
  } else {  // a list of nulls needs no memory
    ArrayParts nulls;
    nulls.length = size;
    nulls.null_count = size;
    parts.children.push_back(make_array(std::move(nulls)));
  }
  return DeviceArray::import(std::move(schema), make_array(std::move(parts)));
}

TEST(Concatenate, OffsetsThatOverflowSayWhatToDo) {
  constexpr int32_t kHalf = 1 << 30;
  expect_error(ErrorKind::kBuffer, "cast to large_string",
               [] { concatenate({claim(field("u"), kHalf), claim(field("u"), kHalf)}); });
  expect_error(ErrorKind::kBuffer, "cast to large_list", [] {
    concatenate({claim(field("+l", field("n")), kHalf), claim(field("+l", field("n")), kHalf)});
  });
  const DeviceArray just_fits = concatenate(
      {claim(field("+l", field("n")), kHalf), claim(field("+l", field("n")), kHalf - 1)});
  EXPECT_EQ(just_fits.buffer_as<int32_t>(1)[2], std::numeric_limits<int32_t>::max());
}

/// A dictionary array with the indices 0, 1, … of all of `values`.
DeviceArray encode(const OwnedSchema& schema, const Values& values) {
  const Type type = parse_schema(*schema.get());
  ArrayParts parts;
  parts.length = static_cast<int64_t>(values.size());
  std::string indices;
  for (std::size_t i = 0; i < values.size(); ++i) indices.push_back(static_cast<char>(i));
  parts.buffers = {Buffer(), exact(indices)};
  parts.dictionary = Builder(5).build(*type.dictionary, values);
  return DeviceArray::import(copy(schema), make_array(std::move(parts)));
}

TEST(Concatenate, EqualDictionariesStay) {
  const OwnedSchema schema = dictionary("c", field("u"));
  const Values values{text("a"), text("b"), text("a"), null()};
  const DeviceArray first = encode(schema, values);
  const DeviceArray whole = concatenate({first, encode(schema, values)});
  EXPECT_EQ(whole.dictionary().length(), 4);
  EXPECT_EQ(whole.dictionary().buffer(2), first.dictionary().buffer(2));
}

TEST(Concatenate, DictionariesThatDifferAreUnifiedByValue) {
  const OwnedSchema schema = dictionary("c", field("u"));
  const DeviceArray whole = concatenate({encode(schema, {text("b"), null(), text("a")}),
                                         encode(schema, {text("a"), text("c"), null()})});
  EXPECT_EQ(read_rows(whole.dictionary()), (Values{text("b"), null(), text("a"), text("c")}));
  EXPECT_EQ(read_rows(whole), (Values{text("b"), null(), text("a"), text("a"), text("c"), null()}));
  EXPECT_EQ(whole.null_count(), 0) << "the nulls lie in the dictionary";
}

TEST(Concatenate, UnifiedDictionaryMustFitTheIndices) {
  const OwnedSchema schema = dictionary("c", field("s"));
  Values low, high;
  for (int64_t i = 0; i < 128; ++i) low.push_back(number(i));
  for (int64_t i = 1; i < 128; ++i) high.push_back(number(i));
  EXPECT_EQ(concatenate({encode(schema, low), encode(schema, high)}).dictionary().length(), 128);
  high.push_back(number(128));
  expect_error(ErrorKind::kBuffer, "129 distinct values",
               [&] { concatenate({encode(schema, low), encode(schema, high)}); });
}

TEST(Concatenate, OrderedDictionariesAreNotReordered) {
  OwnedSchema schema = dictionary("c", field("u"));
  schema->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
  expect_error(ErrorKind::kBuffer, "their order matters",
               [&] { concatenate({encode(schema, {text("a")}), encode(schema, {text("b")})}); });
}

TEST(Concatenate, IndicesOutsideTheDictionary) {
  const OwnedSchema schema = dictionary("c", field("u"));
  ArrayParts parts;
  parts.length = 1;
  parts.buffers = {Buffer(), exact(std::string("\x05"))};
  const Type type = parse_schema(*schema.get());
  parts.dictionary = Builder(5).build(*type.dictionary, {text("x")});
  const DeviceArray bad = DeviceArray::import(copy(schema), make_array(std::move(parts)));
  expect_error(ErrorKind::kValue, "index 5 into a dictionary of 1",
               [&] { concatenate({bad, encode(schema, {text("a")})}); });
}

TEST(Concatenate, ViewsShareTheirDataBuffers) {
  const std::string once(20, 'x');
  const DeviceArray array =
      Builder(2).import(field("vu"), {text(once), text("short"), text("y" + once)});
  const DeviceArray whole = concatenate({array.slice(0, 1), array, array.slice(1, 1)});
  EXPECT_EQ(read_rows(whole),
            (Values{text(once), text(once), text("short"), text("y" + once), text("short")}));
  EXPECT_LE(whole.buffer_count(), array.buffer_count());
  bool is_shared = false;
  for (int64_t i = 2; i + 1 < array.buffer_count(); ++i) {
    is_shared = is_shared || array.buffer(i) == whole.buffer(2);
  }
  EXPECT_TRUE(is_shared);
}

/// A string_view array of one row.
DeviceArray make_view(ArrowBinaryViewRef view) {
  ArrayParts parts;
  parts.length = 1;
  parts.buffers = {Buffer(), exact(std::vector<ArrowBinaryViewRef>{view}),
                   exact(std::string(20, 'x')), exact(std::vector<int64_t>{20})};
  return DeviceArray::import(field("vu"), make_array(std::move(parts)));
}

TEST(Concatenate, ViewsThatPointElsewhere) {
  EXPECT_EQ(concatenate({make_view({20, {}, 0, 0}), make_view({13, {}, 0, 7})}).length(), 2);
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  for (const ArrowBinaryViewRef view :
       {ArrowBinaryViewRef{21, {}, 0, 0}, ArrowBinaryViewRef{13, {}, 0, 8},
        ArrowBinaryViewRef{13, {}, 1, 0}, ArrowBinaryViewRef{13, {}, -1, 0},
        ArrowBinaryViewRef{13, {}, 0, -1}, ArrowBinaryViewRef{-1, {}, 0, 0},
        ArrowBinaryViewRef{kMax, {}, 0, kMax}}) {
    expect_error(ErrorKind::kValue, "malformed string_view array: row 0",
                 [&] { concatenate({make_view(view), make_view(view)}); });
  }
}

TEST(Concatenate, UnionsThatPointElsewhere) {
  const auto make = [](int8_t id, int32_t offset) {
    ArrayParts parts;
    parts.length = 1;
    parts.buffers = {exact(std::vector<int8_t>{id}), exact(std::vector<int32_t>{offset})};
    const OwnedSchema child = field("i");
    parts.children.push_back(Builder(1).build(parse_schema(*child.get()), numbers({1})));
    return DeviceArray::import(field("+ud:4", field("i")), make_array(std::move(parts)));
  };
  EXPECT_EQ(concatenate({make(4, 0), make(4, 0)}).length(), 2);
  expect_error(ErrorKind::kValue, "type id 0", [&] { concatenate({make(0, 0), make(4, 0)}); });
  expect_error(ErrorKind::kValue, "row 1 of a child of 1",
               [&] { concatenate({make(4, 1), make(4, 0)}); });
  expect_error(ErrorKind::kValue, "row -1", [&] { concatenate({make(4, -1), make(4, 0)}); });
}

TEST(Concatenate, OffsetsThatDescend) {
  ArrayParts parts;
  parts.length = 2;
  parts.buffers = {Buffer(), exact(std::vector<int32_t>{0, 2, 1}), exact(std::string("xyz"))};
  const DeviceArray bad = DeviceArray::import(field("u"), make_array(std::move(parts)));
  expect_error(ErrorKind::kValue, "row 1 has the offsets 2 and 1",
               [&] { concatenate({bad, bad}); });
}

TEST(Concatenate, DevicesMustAgreeAndBeReadable) {
  const auto on = [](Device device) {
    ArrayParts parts;
    parts.length = 1;
    parts.buffers = {Buffer(), exact(std::string("1234"))};
    return DeviceArray::import(field("i"), make_array(std::move(parts)), device);
  };
  const Device gpu{kDLCUDA, 1};
  expect_error(ErrorKind::kValue, "array 1 is on cuda:1 and array 0 on cpu:0",
               [&] { concatenate({on({}), on(gpu)}); });
  expect_error(ErrorKind::kBuffer, "concatenate arrays on cuda:1",
               [&] { concatenate({on(gpu), on(gpu)}); });
  EXPECT_EQ(concatenate({on({kDLCUDAHost, 0}), on({kDLCUDAHost, 0})}).length(), 2);
}

}  // namespace
}  // namespace arrowdl::testing
