#include <gtest/gtest.h>

#include <string>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/to_arrow.hpp"
#include "support/producer.hpp"

namespace arrowdl::testing {
namespace {

TEST(MakeStruct, NamesTheFieldThatDiffers) {
  Producer two({2}, {1}, 2);
  Producer three({3}, {1}, 3);
  try {
    make_struct({"a", "b"}, {to_arrow(two.take()), to_arrow(three.take())});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"b\" has 3 rows"), std::string::npos);
  }
}

}  // namespace
}  // namespace arrowdl::testing
