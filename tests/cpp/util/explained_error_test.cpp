// Errors in parts.
#include "util/explained_error.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace arrowdl {
namespace {

TEST(ExplainedError, ComposesItsMessage) {
  const ExplainedError error(ErrorKind::kValue, "300 is large", {"dtype", "use ", "dtype=int16"},
                             7);
  EXPECT_STREQ(error.what(), "row 7: 300 is large: use dtype=int16");
  const ExplainedError outer = name_field(name_field(error.at_row(2), "b"), "a");
  EXPECT_STREQ(outer.what(), "field \"a\": field \"b\": row 2: 300 is large: use dtype=int16");
  EXPECT_EQ(outer.reason(), "field \"a\": field \"b\": row 2: 300 is large");
  EXPECT_EQ(outer.column(), "a");
  EXPECT_EQ(error.column(), std::nullopt);
  EXPECT_EQ(outer.row(), 2);
  EXPECT_EQ(outer.hint().option, "dtype");
  EXPECT_EQ(outer.kind(), ErrorKind::kValue);
}

TEST(ExplainedError, NamesTheFieldOfAnyError) {
  const ExplainedError error = name_field(Error(ErrorKind::kBuffer, "no"), "", "field 3");
  EXPECT_STREQ(error.what(), "field 3: no");
  EXPECT_EQ(error.column(), "");
  EXPECT_EQ(error.row(), -1);
  EXPECT_TRUE(error.hint().text.empty());
}

}  // namespace
}  // namespace arrowdl
