// Tests has_null_rows.
#include "array/null_rows.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "support/build_array.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

DeviceArray on_device(const DeviceArray& array) {
  OwnedDeviceArray exported = array.export_device_array();
  exported->device_type = ARROW_DEVICE_VULKAN;
  exported->device_id = 0;
  return DeviceArray::import(array.export_schema(), std::move(exported));
}

/// int32 values, those below 0 null.
DeviceArray make_values(const std::vector<int32_t>& values) {
  ArrayParts parts;
  parts.length = static_cast<int64_t>(values.size());
  std::vector<bool> bits;
  for (const int32_t value : values) {
    bits.push_back(value >= 0);
    parts.null_count += value >= 0 ? 0 : 1;
  }
  parts.buffers = {parts.null_count == 0 ? Buffer() : exact_bits(bits), exact(values)};
  return DeviceArray::import(field("i"), make_array(std::move(parts)));
}

DeviceArray make_runs(const std::vector<int32_t>& ends, const DeviceArray& values) {
  ArrayParts parts;
  parts.length = ends.back();
  parts.children.push_back(share_array(make_values(ends)));
  parts.children.push_back(share_array(values));
  return DeviceArray::import(field("+r", required(field("i")), values.export_schema()),
                             make_array(std::move(parts)));
}

DeviceArray make_codes(const std::vector<int8_t>& codes, const DeviceArray& values) {
  ArrayParts parts;
  parts.length = static_cast<int64_t>(codes.size());
  parts.buffers = {Buffer(), exact(codes)};
  parts.dictionary = share_array(values);
  return DeviceArray::import(dictionary("c", values.export_schema()), make_array(std::move(parts)));
}

TEST(HasNullRows, ByTheBitmap) {
  const DeviceArray array = make_values({1, -1, 3});
  EXPECT_EQ(has_null_rows(array), true);
  EXPECT_EQ(has_null_rows(array.slice(0, 1)), false);
  EXPECT_EQ(has_null_rows(array.slice(1, 0)), false);
}

TEST(HasNullRows, ByTheRunsOfTheWindow) {
  const DeviceArray runs = make_runs({2, 3, 6}, make_values({1, -1, 3}));
  EXPECT_EQ(has_null_rows(runs), true);
  EXPECT_EQ(has_null_rows(runs.slice(2, 1)), true);
  EXPECT_EQ(has_null_rows(runs.slice(0, 2)), false);
  EXPECT_EQ(has_null_rows(runs.slice(3, 3)), false);
}

TEST(HasNullRows, ByTheDictionaryValuesOfTheWindow) {
  const DeviceArray codes = make_codes({0, 2, 1, 0}, make_values({1, -1, 3}));
  EXPECT_EQ(has_null_rows(codes), true);
  EXPECT_EQ(has_null_rows(codes.slice(0, 2)), false);
  EXPECT_EQ(has_null_rows(codes.slice(2, 1)), true);
}

TEST(HasNullRows, ByRunsOfDictionaryValues) {
  const DeviceArray runs = make_runs({2, 3}, make_codes({0, 1}, make_values({1, -1})));
  EXPECT_EQ(has_null_rows(runs), true);
  EXPECT_EQ(has_null_rows(runs.slice(0, 2)), false);
}

TEST(HasNullRows, ByDictionaryValuesThatAreRunsOrCodes) {
  const DeviceArray runs = make_runs({2, 3, 70}, make_values({1, -1, 3}));
  const DeviceArray of_runs = make_codes({0, 1, 69, 2}, runs);
  EXPECT_EQ(has_null_rows(of_runs), true);
  EXPECT_EQ(has_null_rows(of_runs.slice(0, 3)), false);
  const DeviceArray of_codes =
      make_codes({0, 2, 1}, make_codes({0, 1, 2}, make_values({1, -1, 3})));
  EXPECT_EQ(has_null_rows(of_codes), true);
  EXPECT_EQ(has_null_rows(of_codes.slice(0, 2)), false);
}

TEST(HasNullRows, ByTheMembersOfUnions) {
  for (const bool is_dense : {false, true}) {
    ArrayParts parts;
    parts.length = 3;
    parts.buffers = {exact(std::vector<int8_t>{0, 1, 0})};
    if (is_dense) parts.buffers.push_back(exact(std::vector<int32_t>{0, 0, 1}));
    const DeviceArray first = is_dense ? make_values({5, -1}) : make_values({5, 6, -1});
    const DeviceArray second = is_dense ? make_values({7}) : make_values({-1, 7, 8});
    parts.children.push_back(share_array(first));
    parts.children.push_back(share_array(second));
    const DeviceArray array =
        DeviceArray::import(field(is_dense ? "+ud:0,1" : "+us:0,1", field("i"), field("i")),
                            make_array(std::move(parts)));
    EXPECT_EQ(has_null_rows(array), true);
    EXPECT_EQ(has_null_rows(array.slice(0, 2)), false);
    EXPECT_EQ(has_null_rows(array.slice(2, 1)), true);
    EXPECT_EQ(has_null_rows(on_device(array)), std::nullopt);
  }
}

TEST(HasNullRows, ByDictionaryValuesBeyondOneWordOfTheBitmap) {
  std::vector<int32_t> values(100, 1);
  values[0] = values[63] = values[64] = values[99] = -1;
  const DeviceArray dictionary = make_values(values).slice(1, 98);
  for (int64_t i = 0; i < dictionary.length(); ++i) {
    const DeviceArray codes = make_codes({static_cast<int8_t>(i)}, dictionary);
    EXPECT_EQ(has_null_rows(codes), values[static_cast<std::size_t>(i) + 1] < 0) << i;
  }
}

TEST(HasNullRows, OnADeviceOnlyValidValuesAreKnown) {
  const DeviceArray valid = make_values({1, 2});
  const DeviceArray with_null = make_values({1, -1});
  EXPECT_EQ(has_null_rows(on_device(valid)), false);
  EXPECT_EQ(has_null_rows(on_device(with_null)), true);
  EXPECT_EQ(has_null_rows(on_device(make_runs({1, 2}, valid))), false);
  EXPECT_EQ(has_null_rows(on_device(make_runs({1, 2}, with_null))), std::nullopt);
  EXPECT_EQ(has_null_rows(on_device(make_codes({0, 1}, valid))), false);
  EXPECT_EQ(has_null_rows(on_device(make_codes({0, 1}, with_null))), std::nullopt);
}

}  // namespace
}  // namespace arrowdl::testing
