// Tests the device table, and conversions from and to the devices of DLPack and Arrow.
#include "arrowdl/device.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backends/host_access.hpp"
#include "device/device_pointer.hpp"
#include "support/expect_error.hpp"

namespace arrowdl {
namespace {

TEST(Device, EveryRowIsFoundByNumberAndByName) {
  std::set<int32_t> values;
  for (const DeviceType& row : DeviceTypes{}) {
    EXPECT_EQ(find_device_type(row.value), &row);
    EXPECT_EQ(find_device_type(std::string(row.name)), &row);
    EXPECT_EQ(to_string(Device{row.value, 3}), std::string(row.name) + ":3");
    values.insert(row.value);
  }
  EXPECT_EQ(values.size(), 19U);
  EXPECT_EQ(find_device_type(5), nullptr);
  EXPECT_EQ(find_device_type(std::string("gpu")), nullptr);
  EXPECT_EQ(to_string(Device{99, 0}), "device type 99:0");
}

TEST(Device, DLPackAndArrowDifferInTheNumberOfTheCpu) {
  EXPECT_EQ(from_arrow_device(ARROW_DEVICE_CPU, -1), Device{});
  EXPECT_EQ(from_arrow_device(ARROW_DEVICE_CPU, 0), Device{});
  EXPECT_EQ(from_dl_device(DLDevice{kDLCPU, 7}), Device{});
  EXPECT_EQ(to_arrow_device_id(Device{}), -1);
  EXPECT_EQ(to_arrow_device_id(Device{kDLCUDA, 2}), 2);
  const DLDevice cuda = to_dl_device(Device{kDLCUDA, 2});
  EXPECT_EQ(from_dl_device(cuda), (Device{kDLCUDA, 2}));
  EXPECT_NE(from_dl_device(cuda), (Device{kDLCUDA, 1}));
}

TEST(Device, NumbersWithoutARowPassOneToOne) {
  for (const int32_t type : {5, 99, 2147483647}) {
    const Device device{type, 3};
    EXPECT_EQ(from_dl_device(to_dl_device(device)), device);
    EXPECT_EQ(from_arrow_device(type, to_arrow_device_id(device)), device);
    EXPECT_FALSE(is_host_readable(device));
    EXPECT_TRUE(is_pointer_handle(device));  // it may be
    EXPECT_STREQ(device_event_type(type), "producer-defined");
  }
}

TEST(Device, NumbersBelowOneAreErrors) {
  testing::expect_error(ErrorKind::kValue, "device type 0 is unknown",
                        [] { from_dl_device(DLDevice{static_cast<DLDeviceType>(0), 0}); });
  testing::expect_error(ErrorKind::kValue, "device type -1 is unknown",
                        [] { from_arrow_device(-1, 0); });
  testing::expect_error(ErrorKind::kBuffer, "does not fit",
                        [] { to_dl_device(Device{kDLCUDA, int64_t{1} << 32}); });
}

TEST(Device, TheCpuReadsPinnedAndManagedMemory) {
  for (const int32_t type : {kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged}) {
    EXPECT_NO_THROW(require_host_readable(Device{type, 0}, "read"));
  }
  testing::expect_error(ErrorKind::kBuffer, "cannot read on cuda:1",
                        [] { require_host_readable(Device{kDLCUDA, 1}, "read"); });
}

TEST(Device, OnlyPointersHaveOffsets) {
  const uint8_t bytes[2] = {};
  EXPECT_EQ(offset_pointer(Device{kDLCUDA, 0}, bytes, 1), bytes + 1);
  EXPECT_EQ(offset_pointer(Device{kDLOpenCL, 0}, bytes, 0), bytes);
  EXPECT_EQ(offset_pointer(Device{kDLOpenCL, 0}, nullptr, 1), nullptr);
  testing::expect_error(ErrorKind::kBuffer, "an offset of 1 bytes",
                        [&] { offset_pointer(Device{kDLOpenCL, 0}, bytes, 1); });
}

}  // namespace
}  // namespace arrowdl
