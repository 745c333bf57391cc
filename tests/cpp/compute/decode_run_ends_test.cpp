// Tests the decoding of run ends.
#include "arrowdl/decode_run_ends.hpp"

#include <gtest/gtest.h>

#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

class DecodeRunEndsTest : public ::testing::TestWithParam<NamedSchema> {};

std::vector<NamedSchema> run_end_types() {
  std::vector<NamedSchema> types;
  for (const NamedSchema& type : every_type()) {
    if (type.name.rfind("run_end", 0) == 0) types.push_back(type);
  }
  return types;
}

TEST_P(DecodeRunEndsTest, RowsStayTheSame) {
  const OwnedSchema schema = GetParam().make();
  const Type type = parse_schema(*schema.get());
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Builder builder(seed);
    const Values rows = builder.make_values(type, builder.pick(0, 30));
    const DeviceArray plain = decode_run_ends(builder.import(schema, rows));
    EXPECT_STREQ(plain.type().schema->format, schema->children[1]->format);
    ASSERT_EQ(read_rows(plain), rows);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, DecodeRunEndsTest, ::testing::ValuesIn(run_end_types()),
                         [](const auto& info) { return info.param.name; });

template <typename RunEnd>
DeviceArray encode(const char* format, const std::vector<RunEnd>& ends, int64_t length,
                   int64_t offset = 0) {
  ArrayParts end_parts, value_parts, parts;
  end_parts.length = static_cast<int64_t>(ends.size());
  end_parts.buffers = {Buffer(), exact(ends)};
  std::vector<int32_t> values;
  for (std::size_t i = 0; i < ends.size(); ++i) values.push_back(static_cast<int32_t>(i));
  value_parts.length = end_parts.length;
  value_parts.buffers = {Buffer(), exact(values)};
  parts.length = length;
  parts.offset = offset;
  parts.children.push_back(make_array(std::move(end_parts)));
  parts.children.push_back(make_array(std::move(value_parts)));
  return DeviceArray::import(field("+r", field(format), field("i")), make_array(std::move(parts)));
}

TEST(DecodeRunEnds, TakesTheNameOfTheArray) {
  OwnedSchema schema = rename_schema(field("+r", field("i"), field("i")), "column");
  EXPECT_STREQ(decode_run_ends(Builder(1).import(schema, numbers({1, 1}))).type().name(), "column");
}

TEST(DecodeRunEnds, RunsInsideRuns) {
  const OwnedSchema schema = field("+r", field("i"), field("+r", field("s"), field("u")));
  const Values rows{text("a"), text("a"), text("b")};
  const DeviceArray plain = decode_run_ends(Builder(1).import(schema, rows));
  EXPECT_STREQ(plain.type().schema->format, "u");
  EXPECT_EQ(read_rows(plain), rows);
}

TEST(DecodeRunEnds, EndsThatDoNotAscendToTheRows) {
  using Ends = std::vector<int32_t>;
  EXPECT_EQ(read_rows(decode_run_ends(encode("i", Ends{2, 4}, 3, 1))), numbers({0, 1, 1}));
  for (const Ends& ends : {Ends{2, 3}, Ends{3, 2, 4}, Ends{2, 2, 4}, Ends{-1, -2, -3}, Ends{}}) {
    expect_error(ErrorKind::kValue, "malformed", [&] { decode_run_ends(encode("i", ends, 4)); });
  }
  EXPECT_EQ(decode_run_ends(encode("i", Ends{-1, 0, 4}, 4)).length(), 4);
}

TEST(DecodeRunEnds, OtherLayoutsAreRefused) {
  expect_error(ErrorKind::kType, "not int32",
               [] { decode_run_ends(Builder(1).import(field("i"), numbers({1}))); });
}

TEST(ConcatenateRunEnds, MoreRowsThanTheEndsCanCount) {
  const DeviceArray half = encode("s", std::vector<int16_t>{10, 16384}, 16384);
  const DeviceArray shorter = half.slice(0, 16383);
  const DeviceArray whole = concatenate({half, shorter});
  EXPECT_EQ(whole.child(0).length(), 4);
  EXPECT_EQ(decode_run_ends(whole).length(), 32767);
  expect_error(ErrorKind::kBuffer, "32768 rows are more than the int16 run ends",
               [&] { concatenate({half, half}); });
}

}  // namespace
}  // namespace arrowdl::testing
