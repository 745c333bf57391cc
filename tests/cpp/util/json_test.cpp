// Tests the JSON parser: it reads what RFC 8259 allows, and raises for anything else.
#include "util/json.hpp"

#include <gtest/gtest.h>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"

namespace arrowdl {
namespace {

using Kind = JsonValue::Kind;
using std::string_view_literals::operator""sv;

TEST(Json, ReadsEveryKindOfValue) {
  const JsonValue value = parse_json(
      " { \"a\" : [ 1 , -2.5e+3 , 0 ] , \"b\":{}, \"c\":[],\"d\":true,\"e\":false,\"f\":null,"
      "\"g\":\"x\"}\r\n\t");
  ASSERT_EQ(Kind::kObject, value.kind);
  EXPECT_EQ("-2.5e+3", value.find("a")->items[1].text);
  EXPECT_EQ(1, value.find("a")->items[0].as_int64());
  EXPECT_EQ(Kind::kObject, value.find("b")->kind);
  EXPECT_TRUE(value.find("c")->items.empty());
  EXPECT_TRUE(value.find("d")->boolean);
  EXPECT_FALSE(value.find("e")->boolean);
  EXPECT_EQ(Kind::kNull, value.find("f")->kind);
  EXPECT_EQ("x", value.find("g")->text);
  EXPECT_EQ(nullptr, value.find("h"));
}

TEST(Json, ReadsEscapesAndUtf8) {
  EXPECT_EQ("\"\\/\b\f\n\r\t", parse_json(R"("\"\\\/\b\f\n\r\t")").text);
  EXPECT_EQ("A\u00e9\u20ac\U0001F600", parse_json(R"("\u0041\u00E9\u20ac\ud83d\ude00")").text);
  EXPECT_EQ("\u00e9\u20ac\U0001F600", parse_json("\"\u00e9\u20ac\U0001F600\"").text);
  EXPECT_EQ("\0"sv, parse_json(R"("\u0000")").text);
}

TEST(Json, ReadsIntegersThatFit) {
  EXPECT_EQ(INT64_MAX, parse_json("9223372036854775807").as_int64());
  EXPECT_EQ(INT64_MIN, parse_json("-9223372036854775808").as_int64());
  EXPECT_EQ(0, parse_json("-0").as_int64());
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "1.0", "1e2", "\"1\"",
                           "null", "true", "[1]", "{}"}) {
    EXPECT_THROW(parse_json(text).as_int64(), Error) << text;
  }
}

class MalformedJson : public ::testing::TestWithParam<std::string_view> {};

TEST_P(MalformedJson, IsAnError) {
  try {
    parse_json(GetParam());
    FAIL() << GetParam();
  } catch (const Error& error) {
    EXPECT_EQ(ErrorKind::kValue, error.kind());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Json, MalformedJson,
    ::testing::Values(""sv, " "sv, "{"sv, "}"sv, "["sv, "]"sv, "[1"sv, "[1,"sv, "[1,]"sv, "[,1]"sv,
                      "[1 2]"sv, "{\"a\"}"sv, "{\"a\":}"sv, "{\"a\":1,}"sv, "{,}"sv, "{a:1}"sv,
                      "{'a':1}"sv, "{1:1}"sv, "{\"a\":1 \"b\":2}"sv, "{\"a\":1,\"a\":1}"sv, "1 2"sv,
                      "[] []"sv, "{}x"sv, "[]\0"sv, "tru"sv, "True"sv, "nul"sv, "NaN"sv,
                      "Infinity"sv, "+1"sv, "01"sv, "-"sv, "-a"sv, "1."sv, ".5"sv, "1e"sv, "1e+"sv,
                      "0x10"sv, "- 1"sv, "\""sv, "\"a"sv, "\"\\"sv, "\"\\\""sv, "\"\\x\""sv,
                      "\"\\u12\""sv, "\"\\u12g4\""sv, "\"\\u-123\""sv, "\"\\ud800\""sv,
                      "\"\\udc00\""sv, "\"\\ud800\\u0041\""sv, "\"\\ud800\\ud800\""sv, "\"\n\""sv,
                      "\"\0\""sv, "\"\x80\""sv, "\"\xC0\x80\""sv, "\"\xC3\""sv,
                      "\"\xE0\x80\x80\""sv, "\"\xED\xA0\x80\""sv, "\"\xF0\x80\x80\x80\""sv,
                      "\"\xF4\x90\x80\x80\""sv, "\"\xF8\x88\x80\x80\x80\""sv, "\"\xE2\x82"sv,
                      "\xEF\xBB\xBF{}"sv, "/**/1"sv));

TEST(Json, LimitsNesting) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_NO_THROW(parse_json(nested(64)));
  EXPECT_THROW(parse_json(nested(65)), Error);
  EXPECT_THROW(parse_json(std::string(1000000, '[')), Error);
}

TEST(Json, EveryPrefixOfAValueIsAnErrorOrAValue) {
  const std::string whole = R"({"a":[1,-2.5e+3,"\u20ac\n"],"b":{"c":null,"d":true}})";
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::vector<char> exact(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_THROW(parse_json(std::string_view(exact.data(), n)), Error) << n;
  }
}

TEST(Json, QuotesWhatItReads) {
  const std::string text = "\"\\/\b\f\n\r\t\x01 A\u00e9\U0001F600";
  EXPECT_EQ(text, parse_json(quote_json(text)).text);
}

TensorMetadata fixed(std::string_view json) {
  return parse_tensor_metadata(json, Extension::kFixedShapeTensor);
}

TensorMetadata variable(std::string_view json) {
  return parse_tensor_metadata(json, Extension::kVariableShapeTensor);
}

TEST(TensorMetadata, ReadsFixedShape) {
  const TensorMetadata metadata = fixed(
      R"({"shape": [100, 0, 500], "permutation": [2, 0, 1], "dim_names": ["C", "", "é"], "x": {}})");
  EXPECT_EQ((std::vector<int64_t>{100, 0, 500}), metadata.shape);
  EXPECT_EQ((std::vector<int64_t>{2, 0, 1}), metadata.permutation);
  EXPECT_EQ((std::vector<std::string>{"C", "", "é"}), metadata.dim_names);
  EXPECT_TRUE(fixed(R"({"shape":[]})").shape.empty());
  EXPECT_TRUE(fixed(R"({"shape":[2],"permutation":null,"dim_names":[]})").permutation.empty());
}

TEST(TensorMetadata, ReadsVariableShape) {
  EXPECT_TRUE(variable("{}").uniform_shape.empty());
  const TensorMetadata metadata =
      variable(R"({"uniform_shape":[400,null,3],"permutation":[0,2,1],"shape":"ignored"})");
  EXPECT_EQ((std::vector<std::optional<int64_t>>{400, std::nullopt, 3}), metadata.uniform_shape);
  EXPECT_EQ((std::vector<int64_t>{0, 2, 1}), metadata.permutation);
}

TEST(TensorMetadata, RefusesWhatTheSpecificationDoes) {
  for (const char* json : {"",
                           "[]",
                           "null",
                           "{}",
                           R"({"shape":null})",
                           R"({"shape":3})",
                           R"({"shape":[-1]})",
                           R"({"shape":[1.0]})",
                           R"({"shape":["1"]})",
                           R"({"shape":[null]})",
                           R"({"shape":[9223372036854775808]})",
                           R"({"shape":[4294967296,4294967296]})",
                           R"({"shape":[4294967296,4294967296,0]})",
                           R"({"shape":[2,3],"permutation":[0]})",
                           R"({"shape":[2,3],"permutation":[0,0]})",
                           R"({"shape":[2,3],"permutation":[1,2]})",
                           R"({"shape":[2,3],"permutation":[-1,0]})",
                           R"({"shape":[2,3],"permutation":[0,1,2]})",
                           R"({"shape":[2,3],"dim_names":["a"]})",
                           R"({"shape":[2,3],"dim_names":["a",1]})",
                           R"({"shape":[2,3],"dim_names":"ab"})",
                           R"({"shape":[2,3],"dim_names":["a",null]})",
                           R"({"shape":[2,3],"shape":[2,3]})",
                           R"({"shape":[],"permutation":[0]})"}) {
    EXPECT_THROW(fixed(json), Error) << json;
  }
  for (const char* json :
       {"", "[]", R"({"uniform_shape":[-1]})", R"({"uniform_shape":[1,2],"permutation":[0]})",
        R"({"permutation":[0,1],"dim_names":["a"]})", R"({"permutation":[0,2]})"}) {
    EXPECT_THROW(variable(json), Error) << json;
  }
}

TEST(TensorMetadata, WritesWhatPyarrowWrites) {
  const char* json = R"({"shape":[2,3],"permutation":[1,0],"dim_names":["a\"","bé"]})";
  EXPECT_EQ(json, to_json(fixed(json)));
  EXPECT_EQ(R"({"shape":[0,3]})", to_json(fixed(R"({ "shape": [0, 3] })")));
  EXPECT_EQ(R"({"shape":[]})", to_json(fixed(R"({"shape":[]})")));
}

}  // namespace
}  // namespace arrowdl
