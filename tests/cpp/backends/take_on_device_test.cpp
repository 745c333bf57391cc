// Tests take_on_device: rows of several arrays, in any order and more than once.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arrowdl/copy.hpp"
#include "arrowdl/device_array.hpp"
#include "compute/gather_on_device.hpp"
#include "support/build_array.hpp"
#include "support/device_test.hpp"
#include "support/every_type.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

using TakeOnDeviceTest = DeviceTest;
INSTANTIATE_TEST_SUITE_P(Fake, TakeOnDeviceTest, ::testing::Values(kCuda), runtime_name);

TEST_P(TakeOnDeviceTest, TakesTheRowsOfTheirNumbers) {
  std::size_t taken_types = 0;
  for (const NamedSchema& named : every_type()) {
    SCOPED_TRACE(named.name);
    const OwnedSchema schema = named.make();
    const Type type = parse_schema(*schema.get());
    if (type.dictionary != nullptr) continue;
    bool is_taken = false;
    for (unsigned seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(seed);
      Builder builder(seed);
      Values rows;
      std::vector<DeviceArray> sources;
      try {
        for (int i = 0; i < 3; ++i) {
          const Values part = builder.make_values(type, builder.pick(1, 20));
          rows.insert(rows.end(), part.begin(), part.end());
          sources.push_back(copy_array(builder.import(schema, part), device_));
        }
      } catch (const Error& error) {
        ASSERT_NE(std::string(error.what()).find("on a device"), std::string::npos) << error.what();
        break;  // views cannot be copied to a device
      }
      Values numbers_taken, expected;
      for (int i = 0; i < 40; ++i) {
        const int64_t row = builder.pick(0, static_cast<int>(rows.size()) - 1);
        numbers_taken.push_back(number(row));
        expected.push_back(rows[static_cast<std::size_t>(row)]);
      }
      const DeviceArray indices = copy_array(builder.import(field("l"), numbers_taken), device_);
      try {
        const DeviceArray made = take_on_device(named.make(), sources, indices);
        EXPECT_EQ(made.device(), device_);
        EXPECT_EQ(read_rows(copy_array(made, Device{})), expected);
        is_taken = true;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("CPU"), std::string::npos) << error.what();
        break;  // dense unions
      }
    }
    taken_types += is_taken ? 1 : 0;
  }
  EXPECT_GT(taken_types, 20u);
}

}  // namespace
}  // namespace arrowdl::testing
