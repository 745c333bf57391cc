// Tests that the build uses its pinned versions of nanoarrow and DLPack.

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <nanoarrow/nanoarrow.hpp>

#include "arrowdl/version.hpp"

static_assert(DLPACK_MAJOR_VERSION == 1 && DLPACK_MINOR_VERSION >= 3);

TEST(Build, NanoarrowIsTheOneWhoseHeadersWeSee) {
  EXPECT_STREQ(ArrowNanoarrowVersion(), NANOARROW_VERSION);
  nanoarrow::UniqueSchema schema;
  ASSERT_EQ(ArrowSchemaInitFromType(schema.get(), NANOARROW_TYPE_INT32), NANOARROW_OK);
  EXPECT_STREQ(schema->format, "i");
}

TEST(Build, VersionIsTheProjects) { EXPECT_STREQ(arrowdl::version(), ARROWDL_VERSION); }
