// Tests structs made of fields.
#include <gtest/gtest.h>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "support/expect_error.hpp"
#include "support/sample_arrays.hpp"

namespace arrowdl {
namespace {

using testing::expect_error;
using testing::Rows;

DeviceArray ints(int64_t length, Device device = {}) {
  return testing::primitive("int8", std::vector<int8_t>(static_cast<std::size_t>(length)),
                            Rows{length})
      .import(device);
}

TEST(MakeStruct, SharesItsFields) {
  const DeviceArray field = ints(4);
  const DeviceArray made = make_struct({"a", "b"}, {field, field.slice(0, 4)});
  EXPECT_EQ(to_string(made.type()), "struct<a: int8, b: int8>");
  EXPECT_EQ(made.length(), 4);
  EXPECT_EQ(made.child(1).buffer(1), field.buffer(1));
  EXPECT_EQ(make_struct({}, {}).length(), 0);
}

TEST(MakeStruct, RefusesFieldsThatDoNotFit) {
  expect_error(ErrorKind::kValue, "field \"b\" has 3 rows, \"a\" has 4",
               [] { make_struct({"a", "b"}, {ints(4), ints(3)}); });
  expect_error(ErrorKind::kValue, "field \"b\" is on cuda:0, \"a\" on cpu",
               [] { make_struct({"a", "b"}, {ints(4), ints(4, Device{kDLCUDA, 0})}); });
  expect_error(ErrorKind::kValue, "field 0 has a NUL",
               [] { make_struct({std::string("a\0b", 3)}, {ints(4)}); });
}

}  // namespace
}  // namespace arrowdl
