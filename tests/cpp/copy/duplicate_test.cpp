// Tests copies of arrays within host memory.
#include <gtest/gtest.h>

#include <set>

#include "arrowdl/copy.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/random_slice.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl {
namespace {

using testing::Builder;
using testing::read_rows;

/// The addresses of all buffers of `array`, children and dictionary included.
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

TEST(Duplicate, EveryTypeInOtherMemory) {
  const int64_t objects = live_objects();
  for (const testing::NamedSchema& named : testing::every_type()) {
    SCOPED_TRACE(named.name);
    const OwnedSchema schema = named.make();
    for (unsigned seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(seed);
      Builder builder(seed);
      auto [array, expected] = testing::make_slice(builder, schema);
      const DeviceArray copied = duplicate(array);
      const std::set<const void*> sources = buffers_of(array);
      for (const void* buffer : buffers_of(copied)) EXPECT_EQ(sources.count(buffer), 0U);
      array = DeviceArray();
      ASSERT_EQ(read_rows(copied), expected);
    }
  }
  EXPECT_EQ(live_objects(), objects);
}

}  // namespace
}  // namespace arrowdl
