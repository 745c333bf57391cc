// Tests the dtype table.
#include "arrowdl/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace arrowdl {
namespace {

TEST(Dtype, IsFoundByEachOfItsNames) {
  for (const Dtype& row : Dtypes()) {
    EXPECT_EQ(find_dtype(row.dl(), row.is_padded()), &row) << row.name;
    EXPECT_EQ(find_dtype(row.name), &row);
    if (row.extension == nullptr) {
      EXPECT_EQ(find_dtype_of_format(row.format), &row) << row.name;
    } else {
      EXPECT_EQ(find_dtype_of_extension(row.extension), &row) << row.name;
    }
    if (row.is_padded()) continue;  // the flag is not a part of DLPack's type
    EXPECT_EQ(to_string(row.dl()), row.name);
  }
}

TEST(Dtype, FloatsHaveTheirNan) {
  float single = 0;
  const auto bits = static_cast<uint32_t>(find_dtype("float32")->nan);
  std::memcpy(&single, &bits, sizeof(single));
  EXPECT_TRUE(std::isnan(single));
  double twice = 0;
  std::memcpy(&twice, &find_dtype("complex128")->nan, sizeof(twice));
  EXPECT_TRUE(std::isnan(twice));
  EXPECT_EQ(find_dtype("int64")->nan, 0U);
  for (const Dtype& row : Dtypes()) {
    const int width = row.code == kDLComplex ? row.bits / 2 : row.bits;
    if (width < 64) {
      EXPECT_EQ(row.nan >> width, 0U) << row.name;
    }
  }
}

TEST(Dtype, ValuesOfLessThanAByteArePackedOrPadded) {
  const Dtype& packed = *find_dtype(DLDataType{kDLInt, 4, 1});
  EXPECT_STREQ(packed.name, "int4");
  EXPECT_EQ(packed.itemsize(), 1);
  EXPECT_EQ(packed.values, 2);
  const Dtype& padded = *find_dtype(DLDataType{kDLInt, 4, 1}, true);
  EXPECT_STREQ(padded.name, "int4_padded");
  EXPECT_EQ(padded.itemsize(), 1);
  EXPECT_EQ(padded.values, 1);
  EXPECT_EQ(find_dtype(DLDataType{kDLFloat4_e2m1fn, 4, 2}, true), nullptr);  // pairs of bytes
  EXPECT_EQ(find_dtype(DLDataType{kDLFloat6_e2m3fn, 6, 1}), nullptr);        // 3 bytes
  EXPECT_EQ(find_dtype(DLDataType{kDLUInt, 1, 1}), nullptr);
  EXPECT_EQ(find_dtype(DLDataType{kDLInt, 8, 1}, true), find_dtype("int8"));
}

TEST(Dtype, OthersAreDescribed) {
  EXPECT_EQ(find_dtype(DLDataType{kDLFloat, 32, 4}), nullptr);
  EXPECT_EQ(find_dtype("float4"), nullptr);
  EXPECT_EQ(to_string(DLDataType{kDLInt, 3, 1}), "int of 3 bits");
  EXPECT_EQ(to_string(DLDataType{kDLFloat, 32, 4}), "float of 32 bits with 4 lanes");
  EXPECT_EQ(to_string(DLDataType{99, 8, 1}), "type code 99 of 8 bits");
}

}  // namespace
}  // namespace arrowdl
