// Tests the kinds and messages of errors.
#include "arrowdl/error.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.hpp"

namespace arrowdl {
namespace {

TEST(Error, ConcatJoinsWhatAStreamWrites) {
  EXPECT_EQ(concat("a ", 1, ' ', 2.5, std::string(" b")), "a 1 2.5 b");
  EXPECT_EQ(concat(), "");
}

TEST(Error, EachFunctionRaisesItsKind) {
  testing::expect_error(ErrorKind::kBuffer, "x 1", [] { raise_buffer_error("x ", 1); });
  testing::expect_error(ErrorKind::kValue, "x 1", [] { raise_value_error("x ", 1); });
  testing::expect_error(ErrorKind::kType, "x 1", [] { raise_type_error("x ", 1); });
  testing::expect_error(ErrorKind::kIndex, "x 1", [] { raise_index_error("x ", 1); });
  testing::expect_error(ErrorKind::kMemory, "7 bytes", [] { raise_memory_error(7); });
}

TEST(Error, AProducersErrorKeepsItsCodeAndText) {
  const ProducerError error(ErrorKind::kRuntime, "the stream failed: disk", 5, "disk");
  EXPECT_EQ(error.code(), 5);
  EXPECT_EQ(error.reported(), "disk");
  EXPECT_STREQ(error.what(), "the stream failed: disk");
}

}  // namespace
}  // namespace arrowdl
