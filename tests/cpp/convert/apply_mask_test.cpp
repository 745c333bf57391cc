// Tests masks as validity bitmaps.
#include <gtest/gtest.h>

#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_arrow.hpp"
#include "support/build_array.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

/// A 1-D bool tensor.
OwnedTensor make_mask(const std::vector<uint8_t>& bools) {
  const Buffer bytes = exact(bools);
  TensorView view;
  view.dtype = find_dtype("bool");
  view.push_dim(static_cast<int64_t>(bools.size()));
  view.set_contiguous_strides();
  view.data = bytes.data();
  return make_tensor(view, bytes.owner(), 0);
}

DeviceArray make_ints() {
  return Builder(1).import(field("i"), {number(1), null(), number(3), number(4)});
}

TEST(ApplyMask, AddsToTheNullsThatThereAre) {
  const Values rows{number(1), null(), null(), number(4)};
  EXPECT_EQ(read_rows(apply_mask(make_ints(), make_mask({1, 1, 0, 2}))), rows);
  EXPECT_EQ(read_rows(apply_mask(make_ints(), make_mask({0, 0, 2, 0}), false)), rows);
}

TEST(ApplyMask, AMaskOfValidRowsIsNoNewBitmap) {
  const DeviceArray array = make_ints();
  EXPECT_EQ(apply_mask(array, make_mask({1, 1, 1, 1})).validity(), array.validity());
}

TEST(ApplyMask, OtherMasksAreRefused) {
  expect_error(ErrorKind::kValue, "mask has shape (3,), expected (4,)",
               [] { apply_mask(make_ints(), make_mask({1, 1, 1})); });
  OwnedTensor numbers = make_mask({1, 1, 1, 1});
  const TensorView view = [&] {
    TensorView of = view_tensor(*numbers);
    of.dtype = find_dtype("uint8");
    return of;
  }();
  expect_error(ErrorKind::kValue, "mask is of uint8, expected bool",
               [&] { apply_mask(make_ints(), make_tensor(view, std::move(numbers))); });
}

}  // namespace
}  // namespace arrowdl::testing
