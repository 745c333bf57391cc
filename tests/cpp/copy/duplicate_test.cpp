// The rows of an array of the CPU in memory of their own.
#include <gtest/gtest.h>

#include <set>

#include "arrowdl/copy.hpp"
#include "support/sample_arrays.hpp"
#include "support/values.hpp"

namespace arrowdl {
namespace {

using testing::Builder;
using testing::read_rows;
using testing::Values;

/// Where the buffers of `array` lie, with those below it.
void collect(const ArrowArray& array, std::set<const void*>* found) {
  for (int64_t i = 0; i < array.n_buffers; ++i) {
    if (array.buffers[i] != nullptr) found->insert(array.buffers[i]);
  }
  for (int64_t i = 0; i < array.n_children; ++i) collect(*array.children[i], found);
  if (array.dictionary != nullptr) collect(*array.dictionary, found);
}

std::set<const void*> buffers_of(const DeviceArray& array) {
  std::set<const void*> found;
  const OwnedArray exported = array.export_array();
  collect(*exported.get(), &found);
  return found;
}

/// Nulls, offsets and rubbish around the rows; buffers of exactly the size that their rows need.
TEST(Duplicate, EveryTypeInOtherMemory) {
  const int64_t objects = live_objects();
  for (const testing::NamedSchema& named : testing::every_type()) {
    SCOPED_TRACE(named.name);
    const OwnedSchema schema = named.make();
    const Type type = parse_schema(*schema.get());
    for (unsigned seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(seed);
      Builder builder(seed);
      const Values rows = builder.make_values(type, builder.pick(0, 20));
      const auto count = static_cast<int64_t>(rows.size());
      const int64_t start = builder.pick(0, count);
      const int64_t length = builder.pick(0, count - start);
      DeviceArray array = builder.import(schema, rows).slice(start, length);
      const DeviceArray copied = duplicate(array);
      const std::set<const void*> sources = buffers_of(array);
      for (const void* buffer : buffers_of(copied)) EXPECT_EQ(sources.count(buffer), 0U);
      array = DeviceArray();
      ASSERT_EQ(read_rows(copied), Values(rows.begin() + start, rows.begin() + start + length));
    }
  }
  EXPECT_EQ(live_objects(), objects);
}

}  // namespace
}  // namespace arrowdl
