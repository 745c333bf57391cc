// Tests casts to a requested schema.
#include "arrowdl/cast_to_schema.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

using SharedSchema = std::shared_ptr<const ParsedSchema>;

DeviceArray cast_as(const DeviceArray& array, const OwnedSchema& schema) {
  return cast_to_schema(array, share_schema(copy(schema)));
}

/// `array` cast to `schema`, which must not be refused.
DeviceArray expect_given(const DeviceArray& array, const OwnedSchema& schema) {
  const SharedSchema requested = share_schema(copy(schema));
  const DeviceArray given = cast_to_schema(array, requested);
  EXPECT_EQ(to_string(given.type()), to_string(requested->type));
  EXPECT_EQ(given.type().schema->flags, schema->flags);
  EXPECT_STREQ(given.type().name(), requested->type.name());
  return given;
}

class CastTest : public ::testing::TestWithParam<NamedSchema> {
 protected:
  void SetUp() override { objects_ = live_objects(); }
  void TearDown() override { EXPECT_EQ(live_objects(), objects_); }

  /// Casts arrays of `from` to `to`, with garbage around the rows and under nulls: the rows stay.
  void expect_same_rows(const OwnedSchema& from, const OwnedSchema& to) {
    const Type type = parse_schema(*from.get());
    for (unsigned seed = 0; seed < 25; ++seed) {
      SCOPED_TRACE(seed);
      Builder builder(seed);
      const Values rows = builder.make_values(type, builder.chance(5) ? 0 : builder.pick(1, 20));
      const DeviceArray array = builder.import(from, rows);
      ASSERT_EQ(read_rows(expect_given(array, to)), rows);
      const int64_t start = builder.pick(0, array.length());
      const DeviceArray slice = array.slice(start, builder.pick(0, array.length() - start));
      ASSERT_EQ(read_rows(expect_given(slice, to)), read_rows(slice));
    }
  }

 private:
  int64_t objects_ = 0;
};

TEST_P(CastTest, ItsOwnSchemaIsTheArrayItself) {
  const OwnedSchema schema = GetParam().make();
  Builder builder(1);
  const DeviceArray array =
      builder.import(schema, builder.make_values(parse_schema(*schema.get()), 9));
  const DeviceArray given = cast_as(array, schema);
  EXPECT_EQ(given.storage(), array.storage());
}

TEST_P(CastTest, AnotherNameSharesTheBuffers) {
  const OwnedSchema schema = GetParam().make();
  const OwnedSchema renamed = rename_schema(copy(schema), "other");
  Builder builder(2);
  const DeviceArray array =
      builder.import(schema, builder.make_values(parse_schema(*schema.get()), 9));
  const DeviceArray given = expect_given(array, renamed);
  ASSERT_EQ(given.buffer_count(), array.buffer_count());
  for (int64_t i = 1; i < array.buffer_count(); ++i) EXPECT_EQ(given.buffer(i), array.buffer(i));
  expect_same_rows(schema, renamed);
}

TEST_P(CastTest, ListsOfEveryKind) {
  constexpr const char* kLists[] = {"+l", "+L", "+vl", "+vL"};
  for (const char* from : kLists) {
    for (const char* to : kLists) {
      SCOPED_TRACE(concat(from, " to ", to));
      expect_same_rows(field(from, GetParam().make()), field(to, GetParam().make()));
    }
  }
}

TEST_P(CastTest, ListsOfAFixedSizeAndBack) {
  const OwnedSchema fixed = field("+w:3", GetParam().make());
  for (const char* format : {"+l", "+L", "+vl", "+vL"}) {
    SCOPED_TRACE(format);
    const OwnedSchema lists = field(format, GetParam().make());
    expect_same_rows(fixed, lists);
    Builder builder(3);
    const Values rows = builder.make_values(parse_schema(*fixed.get()), 12);
    const DeviceArray array = builder.import(lists, rows);
    EXPECT_EQ(read_rows(expect_given(array, fixed)), rows);
  }
}

TEST_P(CastTest, FieldsInAnotherOrder) {
  const OwnedSchema from = field("+s", GetParam().make(), field("i"));
  const OwnedSchema to = field("+s", field("i"), GetParam().make());
  ArrowSchemaSetName(to->children[0], "b");
  ArrowSchemaSetName(to->children[1], "a");
  const Type type = parse_schema(*from.get());
  for (unsigned seed = 0; seed < 20; ++seed) {
    Builder builder(seed);
    Values rows = builder.make_values(type, builder.pick(0, 20));
    const DeviceArray given = expect_given(builder.import(from, rows), to);
    for (Value& row : rows) {
      if (!row.is_null) std::swap(row.items[0], row.items[1]);
    }
    ASSERT_EQ(read_rows(given), rows);
  }
}

/// Fields that are converted, beside a field of each type.
TEST_P(CastTest, FieldsBesideOnesThatAreConverted) {
  expect_same_rows(field("+s", GetParam().make(), field("i"), field("u")),
                   field("+s", GetParam().make(), field("l"), field("vu")));
}

TEST_P(CastTest, DictionariesAndBack) {
  const OwnedSchema plain = GetParam().make();
  const Type type = parse_schema(*plain.get());
  if (type.dictionary != nullptr || type.layout == Layout::kRunEndEncoded) GTEST_SKIP();
  expect_same_rows(plain, dictionary("i", GetParam().make()));
  expect_same_rows(dictionary("i", GetParam().make()), plain);
  expect_same_rows(dictionary("c", GetParam().make()), dictionary("l", GetParam().make()));
}

TEST_P(CastTest, RunEnds) {
  const Type type = parse_schema(*GetParam().make().get());
  if (type.layout == Layout::kRunEndEncoded) GTEST_SKIP();
  const auto runs = [](const char* ends) {
    return field("+r", required(field(ends)), GetParam().make());
  };
  expect_same_rows(runs("s"), runs("l"));
  expect_same_rows(runs("i"), GetParam().make());
}

TEST_P(CastTest, OtherKindsOfDataAreErrors) {
  const OwnedSchema schema = GetParam().make();
  Builder builder(4);
  const DeviceArray array =
      builder.import(schema, builder.make_values(parse_schema(*schema.get()), 3));
  if (GetParam().name == "null" || GetParam().name == "run_end_null") return;  // of every type
  for (const OwnedSchema& other :
       {field("+s", field("c"), field("c"), field("c"), field("c")), field("+us:9", field("c"))}) {
    expect_error(ErrorKind::kValue, "is incompatible with the data",
                 [&] { cast_as(array, other); });
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, CastTest, ::testing::ValuesIn(every_type()),
                         [](const auto& info) { return info.param.name; });

TEST(CastToSchema, StringsOfEveryKind) {
  for (const char* from : {"u", "U", "vu", "z", "Z", "vz"}) {
    for (const char* to : {"u", "U", "vu", "z", "Z", "vz"}) {
      SCOPED_TRACE(concat(from, " to ", to));
      const bool is_text = from[0] == 'u' || from[0] == 'U' || from[1] == 'u';
      const bool wants_text = to[0] == 'u' || to[0] == 'U' || to[1] == 'u';
      if (wants_text && !is_text) continue;
      const OwnedSchema own = field(from);
      Builder builder(5);
      Values rows = builder.make_values(parse_schema(*own.get()), 30);
      rows.push_back(text(std::string(40, 'x')));  // longer than a view holds
      const DeviceArray array = builder.import(own, rows);
      EXPECT_EQ(read_rows(expect_given(array, field(to))), rows);
      EXPECT_EQ(read_rows(expect_given(array.slice(7, 11), field(to))),
                Values(rows.begin() + 7, rows.begin() + 18));
    }
  }
}

TEST(CastToSchema, UnitsAreExact) {
  const auto given = [](const char* from, const char* to, int64_t value) {
    return cast_as(Builder(6).import(field(from), numbers({value})), field(to));
  };
  EXPECT_EQ(read_rows(given("tsu:", "tsm:", -5000)), numbers({-5}));
  EXPECT_EQ(read_rows(given("tDs", "tDn", -5)), numbers({-5000000000}));
  EXPECT_EQ(read_rows(given("ttm", "ttn", 86399999)), numbers({86399999000000}));
  EXPECT_EQ(read_rows(given("ttn", "tts", 5000000000)), numbers({5}));
  EXPECT_EQ(read_rows(given("tdD", "tdm", -2)), numbers({-172800000}));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const auto refused = [&](const char* from, const char* to, int64_t value) {
    expect_error(ErrorKind::kValue, "cannot hold", [&] { given(from, to, value); });
  };
  for (const int64_t value : {kMost, kLeast, kMost / 1000 + 1, kLeast / 1000 - 1}) {
    refused("tss:", "tsm:", value);
  }
  EXPECT_EQ(read_rows(given("tss:", "tsm:", kLeast / 1000)), numbers({kLeast / 1000 * 1000}));
  refused("tsu:", "tsm:", -5001);
  refused("ttn", "tts", (int64_t{1} << 31) * 1000000000);
  EXPECT_EQ(read_rows(given("tdD", "tsn:", -2)), numbers({-172800000000000}));
  EXPECT_EQ(read_rows(given("tss:", "tdD", -86400)), numbers({-1}));
  refused("tss:", "tdD", -86401);
}

/// A list with more values than 32-bit offsets can count is not read past its memory.
TEST(CastToSchema, OffsetsThatDoNotFit) {
  const int64_t many = int64_t{std::numeric_limits<int32_t>::max()} + 1;
  ArrayParts parts;
  parts.length = 1;
  parts.buffers = {Buffer(), exact(std::vector<int64_t>{0, many})};
  ArrayParts nulls;
  nulls.length = many;
  nulls.null_count = many;
  parts.children.push_back(make_array(std::move(nulls)));
  const DeviceArray array =
      DeviceArray::import(field("+L", field("n")), make_array(std::move(parts)));
  for (const char* format : {"+l", "+vl"}) {
    expect_error(ErrorKind::kValue, "more than the offsets of",
                 [&] { cast_as(array, field(format, field("n"))); });
    const OwnedStream stream =
        cast_stream(make_stream({array}), share_schema(field(format, field("n"))));
    expect_error(ErrorKind::kValue, "more than the offsets of", [&] { stream->next(); });
  }
}

TEST(CastStream, TheTypeDecides) {
  const DeviceArray array = Builder(7).import(field("i"), numbers({1, 2}));
  const OwnedStream wider = cast_stream(make_stream({array, array}), share_schema(field("l")));
  EXPECT_EQ(to_string(wider->schema()->type), "int64");
  EXPECT_EQ(read_rows(wider->next()), numbers({1, 2}));
  EXPECT_EQ(read_rows(wider->next()), numbers({1, 2}));
  EXPECT_FALSE(wider->next());
  const OwnedStream narrower = cast_stream(make_stream({array}), share_schema(field("s")));
  EXPECT_EQ(to_string(narrower->schema()->type), "int16");
  EXPECT_EQ(read_rows(narrower->next()), numbers({1, 2}));
  OwnedStream kept = make_stream({array});
  for (const char* format : {"u", "tts"}) {
    expect_error(ErrorKind::kValue, "is incompatible",
                 [&] { cast_stream(std::move(kept), share_schema(field(format))); });
  }
  EXPECT_TRUE(kept->next()) << "the caller keeps a stream that is refused";
}

/// In memory that the host cannot read, only casts that share it work.
class DeviceCastTest : public ::testing::Test {
 protected:
  static DeviceArray on_device(const OwnedSchema& schema, const Values& rows) {
    OwnedDeviceArray array = Builder(8).import(schema, rows).export_device_array();
    array->device_type = ARROW_DEVICE_VULKAN;
    array->device_id = 0;
    return DeviceArray::import(copy(schema), std::move(array));
  }
};

TEST_F(DeviceCastTest, WhatSharesIsGiven) {
  const OwnedSchema from = field("+s", field("i"), field("u"));
  const OwnedSchema to = field("+s", field("z"), field("i"));
  ArrowSchemaSetName(to->children[0], "b");
  ArrowSchemaSetName(to->children[1], "a");
  Values rows;
  for (int i = 0; i < 9; ++i) rows.push_back(items({number(i), text("x")}));
  rows[3] = null();
  const DeviceArray array = on_device(from, rows).slice(2, 6);
  const DeviceArray given = expect_given(array, to);
  EXPECT_EQ(given.device(), array.device());
  EXPECT_EQ(given.validity(), array.validity());
  EXPECT_EQ(given.offset(), array.offset());
  EXPECT_EQ(given.child(0).buffer(2), array.child(1).buffer(2));
  EXPECT_EQ(given.child(0).offset(), array.child(1).offset());
}

TEST_F(DeviceCastTest, WhatDoesNotIsNot) {
  const auto own = [](const OwnedSchema& from, const Values& rows, const OwnedSchema& to) {
    const DeviceArray array = on_device(from, rows);
    EXPECT_EQ(cast_as(array, to).storage(), array.storage());
    const OwnedStream stream = cast_stream(make_stream({array}), share_schema(copy(to)));
    EXPECT_EQ(stream->next().storage(), array.storage());
  };
  own(field("i"), numbers({1}), field("l"));
  own(field("b"), numbers({1}), dictionary("c", field("b")));
  own(field("+l", field("i")), {items(numbers({1}))}, field("+L", field("i")));
  own(field("tss:"), numbers({1}), field("tsm:"));
  own(field("i"), {number(1), null()}, required(field("i")));
}

}  // namespace
}  // namespace arrowdl::testing
