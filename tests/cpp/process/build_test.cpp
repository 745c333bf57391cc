// Tests that the build uses its pinned versions of nanoarrow and DLPack.

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <nanoarrow/nanoarrow.hpp>
#include <sstream>

#include "arrowdl/version.hpp"

static_assert(DLPACK_MAJOR_VERSION == 1 && DLPACK_MINOR_VERSION >= 3);

TEST(Build, NanoarrowIsTheOneWhoseHeadersWeSee) {
  EXPECT_STREQ(ArrowNanoarrowVersion(), NANOARROW_VERSION);
  nanoarrow::UniqueSchema schema;
  ASSERT_EQ(ArrowSchemaInitFromType(schema.get(), NANOARROW_TYPE_INT32), NANOARROW_OK);
  EXPECT_STREQ(schema->format, "i");
}

TEST(Build, VersionIsTheProjects) {
  EXPECT_STREQ(arrowdl::version(), PROJECT_VERSION);
  EXPECT_STREQ(ARROWDL_VERSION, PROJECT_VERSION);
  std::ostringstream numbers;
  numbers << ARROWDL_VERSION_MAJOR << '.' << ARROWDL_VERSION_MINOR << '.' << ARROWDL_VERSION_PATCH;
  EXPECT_EQ(numbers.str(), PROJECT_VERSION);
#if ARROWDL_VERSION_INT < 100 || ARROWDL_VERSION_INT % 100 != ARROWDL_VERSION_PATCH
  ADD_FAILURE() << ARROWDL_VERSION_INT;
#endif
}
