// Tests DeviceArray: import, windows, children, exports.
#include "arrowdl/device_array.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "support/expect_error.hpp"
#include "support/sample_arrays.hpp"

namespace arrowdl {
namespace {

using testing::bits;
using testing::expect_error;
using testing::primitive;
using testing::Rows;
using testing::Sample;

/// int8 values 0, 1, 2, … null where `validity` has a '0'.
Sample counting(int64_t length, const std::string& validity = "") {
  std::vector<int8_t> values(static_cast<std::size_t>(length));
  std::iota(values.begin(), values.end(), int8_t{0});
  return primitive("int8", values, Rows{length, validity}, "a");
}

/// 16 rows of a struct with the field "a".
DeviceArray one_field(const std::string& struct_validity, const std::string& field_validity) {
  return testing::nest("+s", testing::samples(counting(16, field_validity)),
                       Rows{16, struct_validity})
      .import();
}

TEST(DeviceArray, CountsNullsOfItsWindowAlone) {
  const DeviceArray array = counting(16, "0000111111111111").import();
  EXPECT_EQ(array.null_count(), 4);
  EXPECT_EQ(array.slice(2, 3).null_count(), 2);
  EXPECT_EQ(array.slice(4, 12).null_count(), 0);
}

TEST(DeviceArray, RefusesRowsThatItHasNot) {
  const DeviceArray array = counting(4).import();
  EXPECT_EQ(array.slice(4, 0).length(), 0);
  EXPECT_THROW(array.slice(-1, 1), Error);
  EXPECT_THROW(array.slice(0, 5), Error);
  EXPECT_THROW(array.slice(5, 0), Error);
  EXPECT_THROW(array.slice(1, INT64_MAX), Error);
}

TEST(DeviceArray, AFieldIsNullWhereTheStructIs) {
  const DeviceArray rows = one_field("1111000011111111", "1111111100001111");
  const DeviceArray field = rows.slice(3, 10).field(0);
  EXPECT_EQ(field.length(), 10);
  EXPECT_EQ(field.null_count(), 4 + 4);  // rows 4-7 of the struct, 8-11 of the field; 12 is valid
  EXPECT_EQ(field.buffer_as<int8_t>(1)[field.offset()], 3);
}

TEST(DeviceArray, AFieldOfAStructWithoutNullsIsShared) {
  const DeviceArray rows = one_field("1111111111111111", "");
  EXPECT_EQ(rows.field(0).buffer(1), rows.child(0).buffer(1));
  EXPECT_EQ(rows.field(0).validity(), nullptr);
}

TEST(DeviceArray, NewValidityFitsAnyOffset) {
  const DeviceArray array = counting(40).import();
  for (int64_t start = 0; start < 20; ++start) {
    const DeviceArray masked = array.slice(start, 16).with_validity(bits("0101010110101010"), 8);
    ASSERT_EQ(masked.length(), 16);
    EXPECT_EQ(masked.null_count(), 8);
    EXPECT_EQ(masked.slice(0, 8).null_count(), 4);
    EXPECT_EQ(masked.slice(1, 1).null_count(), 0);
    EXPECT_EQ(masked.buffer_as<int8_t>(1)[masked.offset()], start);
  }
}

TEST(DeviceArray, NewValidityMovesNoHandle) {
  const DeviceArray array = counting(40).import(Device{kDLOpenCL, 0});
  const DeviceArray masked = array.slice(7, 16).with_validity(bits("0101010110101010"), 8);
  EXPECT_EQ(masked.buffer(1), array.buffer(1));  // seven rows stay in the offset
  expect_error(ErrorKind::kBuffer, "an offset of 8 bytes into memory on opencl:0",
               [&] { array.slice(8, 16).with_validity(bits("0101010110101010"), 8); });
}

TEST(DeviceArray, ExportedChildrenCanBeMovedOut) {
  const int64_t before = live_objects();
  {
    OwnedArray child;
    {
      const DeviceArray rows = one_field("1111111111111111", "");
      OwnedArray exported = rows.export_array();
      ArrowArrayMove(exported->children[0], child.get());
      EXPECT_EQ(exported->children[0]->release, nullptr);
    }
    EXPECT_EQ(static_cast<const int8_t*>(child->buffers[1])[5], 5);
  }
  EXPECT_EQ(live_objects(), before);
}

TEST(DeviceArray, RefusesToShowDeviceMemoryAsHostMemory) {
  const DeviceArray array = counting(4).import(Device{kDLCUDA, 1});
  EXPECT_THROW(array.export_array(), Error);
  const OwnedDeviceArray exported = array.export_device_array();
  EXPECT_EQ(exported->device_type, ARROW_DEVICE_CUDA);
  EXPECT_EQ(exported->device_id, 1);
}

TEST(DeviceArray, DoesNotCountNullsThatOnlyTheDeviceCanRead) {
  const DeviceArray array = counting(8, "11111111").import(Device{kDLCUDA, 0});
  EXPECT_THROW(array.null_count(), Error);
}

TEST(DeviceArray, RefusesAnEventOnADeviceThatHasNone) {
  Sample sample = counting(4);
  OwnedDeviceArray array;
  sample.array.move(&array->array);
  array->device_type = ARROW_DEVICE_CPU;
  int event = 0;
  array->sync_event = &event;
  EXPECT_THROW(DeviceArray::import(std::move(sample.schema), std::move(array)), Error);
}

TEST(DeviceArray, ReleasesWhatItRefuses) {
  const int64_t before = live_objects();
  Sample sample = counting(4);
  sample.array->length = -1;
  EXPECT_THROW(std::move(sample).import(), Error);
  EXPECT_EQ(live_objects(), before);
}

}  // namespace
}  // namespace arrowdl
