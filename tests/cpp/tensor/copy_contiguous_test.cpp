// Tests contiguous copies of strided views.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "arrowdl/error.hpp"
#include "arrowdl/tensor_view.hpp"
#include "support/exact_bytes.hpp"

namespace arrowdl {
namespace {

using testing::ExactBytes;

/// A view of memory that ends with the last element that the strides reach.
struct Strided {
  Strided(const char* dtype, const std::vector<int64_t>& shape, std::vector<int64_t> strides,
          unsigned seed = 0)
      : memory(0) {
    int64_t lowest = 0;
    int64_t highest = 0;
    view.dtype = find_dtype(dtype);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      view.push_dim(shape[d]);
      view.strides[d] = strides[d];
      (strides[d] < 0 ? lowest : highest) += strides[d] * std::max<int64_t>(shape[d] - 1, 0);
    }
    const int64_t itemsize = view.dtype->itemsize();
    memory = ExactBytes::random(view.size() == 0 ? 0 : (highest - lowest + 1) * itemsize, seed);
    view.data = memory.data() - lowest * itemsize;
  }

  TensorView view;
  ExactBytes memory;
};

/// ElementReader of `view` in C order, one by one.
std::vector<uint8_t> copy_naively(const TensorView& view) {
  std::vector<uint8_t> out;
  const int64_t itemsize = view.dtype->itemsize();
  for (int64_t i = 0; i < view.size(); ++i) {
    int64_t rest = i;
    int64_t at = 0;
    for (int32_t d = view.ndim - 1; d >= 0; --d) {
      at += rest % view.shape[d] * view.strides[d];
      rest /= view.shape[d];
    }
    const uint8_t* element = view.data + at * itemsize;
    out.insert(out.end(), element, element + itemsize);
  }
  return out;
}

void expect_copied(const TensorView& view) {
  ExactBytes target(view.nbytes());
  copy_contiguous(view, target.data());
  const std::vector<uint8_t> expected = copy_naively(view);
  ASSERT_TRUE(std::equal(expected.begin(), expected.end(), target.data()));
}

const char* const kDtypes[] = {"int8", "float16", "float32", "complex64", "complex128"};

TEST(CopyContiguous, CopiesAnyStrides) {
  std::mt19937 engine(7);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  for (int trial = 0; trial < 3000; ++trial) {
    const auto ndim = static_cast<std::size_t>(pick(0, 5));
    std::vector<int64_t> shape(ndim);
    std::vector<int64_t> strides(ndim);
    for (std::size_t d = 0; d < ndim; ++d) {
      shape[d] = pick(0, 9) == 0 ? 0 : pick(1, ndim < 3 ? 70 : 6);
      strides[d] = pick(-12, 12);
    }
    expect_copied(Strided(kDtypes[trial % 5], shape, strides, static_cast<unsigned>(trial)).view);
  }
}

TEST(CopyContiguous, CopiesEveryPermutationOfADenseTensor) {
  const std::vector<int64_t> extents = {3, 17, 1, 33, 2};
  std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  do {
    std::vector<int64_t> strides(5);
    int64_t stride = 1;
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      strides[*d] = stride;
      stride *= extents[*d];
    }
    for (const char* dtype : kDtypes) expect_copied(Strided(dtype, extents, strides).view);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(CopyContiguous, CopiesBroadcastReversedAndSteppedRows) {
  for (const char* dtype : kDtypes) {
    expect_copied(Strided(dtype, {100, 33}, {0, 1}).view);
    expect_copied(Strided(dtype, {100, 33}, {1, 0}).view);
    expect_copied(Strided(dtype, {100, 33}, {0, 0}).view);
    expect_copied(Strided(dtype, {100, 33}, {-33, -1}).view);
    expect_copied(Strided(dtype, {100, 33}, {-1, -100}).view);
    expect_copied(Strided(dtype, {100, 2}, {7, 1}).view);
    expect_copied(Strided(dtype, {100}, {3}).view);
    expect_copied(Strided(dtype, {}, {}).view);
    expect_copied(Strided(dtype, std::vector<int64_t>(64, 1), std::vector<int64_t>(64, -5)).view);
  }
}

TEST(CopyContiguous, RefusesMemoryThatTheHostCannotRead) {
  Strided strided("float32", {2, 2}, {1, 2});
  strided.view.device = Device{kDLCUDA, 1};
  try {
    copy_contiguous(strided.view, nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(ErrorKind::kBuffer, error.kind());
    EXPECT_NE(std::string::npos, std::string(error.what()).find("cuda:1"));
  }
}

}  // namespace
}  // namespace arrowdl
