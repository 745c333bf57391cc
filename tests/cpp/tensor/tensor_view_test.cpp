// Tests views of tensors.
#include "arrowdl/tensor_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "arrowdl/error.hpp"

namespace arrowdl {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

/// A float32 DLTensor over memory that is never read.
struct Sample {
  explicit Sample(std::vector<int64_t> the_shape, std::vector<int64_t> the_strides = {})
      : shape(std::move(the_shape)), strides(std::move(the_strides)) {}

  DLTensor tensor() {
    DLTensor tensor{};
    tensor.data = data;
    tensor.device = {device, 0};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = dtype;
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
    tensor.byte_offset = byte_offset;
    return tensor;
  }

  TensorView view() { return view_tensor(tensor()); }

  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  uint8_t memory[16] = {};
  void* data = memory;
  DLDeviceType device = kDLCPU;
  DLDataType dtype{kDLFloat, 32, 1};
  uint64_t byte_offset = 0;
};

std::vector<int64_t> strides_of(const TensorView& view) {
  return std::vector<int64_t>(view.strides, view.strides + view.ndim);
}

template <typename Call>
void expect_error(ErrorKind kind, Call call, const std::string& word) {
  try {
    call();
    FAIL() << "no error that says " << word;
  } catch (const Error& error) {
    EXPECT_EQ(kind, error.kind()) << error.what();
    EXPECT_NE(std::string::npos, std::string(error.what()).find(word)) << error.what();
  }
}

TEST(ViewTensor, MakesNullStridesContiguous) {
  const TensorView view = Sample({2, 3, 4}).view();
  EXPECT_EQ((std::vector<int64_t>{12, 4, 1}), strides_of(view));
  EXPECT_EQ(24, view.size());
  EXPECT_EQ(96, view.nbytes());
  EXPECT_TRUE(view.is_contiguous());
}

TEST(ViewTensor, FoldsByteOffset) {
  Sample sample({1});
  sample.byte_offset = 4;
  EXPECT_EQ(sample.memory + 4, sample.view().data);
}

TEST(ViewTensor, RefusesByteOffsetToAnOpaqueHandle) {
  for (const DLDeviceType device : {kDLOpenCL, kDLVulkan, kDLMetal, kDLWebGPU}) {
    Sample sample({1});
    sample.device = device;
    EXPECT_EQ(sample.memory, sample.view().data);
    sample.byte_offset = 4;
    expect_error(ErrorKind::kBuffer, [&] { sample.view(); }, "opaque handle");
  }
}

TEST(ViewTensor, TakesNullDataWhereThereIsNothing) {
  Sample sample({3, 0, 2});
  sample.data = nullptr;
  sample.byte_offset = 64;
  EXPECT_EQ(nullptr, sample.view().data);
  EXPECT_EQ(0, sample.view().size());
  sample.shape = {3, 1, 2};
  expect_error(ErrorKind::kValue, [&] { sample.view(); }, "NULL");
}

TEST(ViewTensor, ReadsScalars) {
  Sample sample({});
  EXPECT_EQ(1, sample.view().size());
  DLTensor tensor = sample.tensor();
  tensor.shape = nullptr;
  tensor.strides = nullptr;
  EXPECT_EQ(0, view_tensor(tensor).ndim);
}

TEST(ViewTensor, RefusesBadDimensions) {
  Sample sample({1});
  DLTensor tensor = sample.tensor();
  tensor.ndim = -1;
  expect_error(ErrorKind::kValue, [&] { view_tensor(tensor); }, "ndim is -1");
  tensor = sample.tensor();
  tensor.shape = nullptr;
  expect_error(ErrorKind::kValue, [&] { view_tensor(tensor); }, "shape is NULL");
  expect_error(ErrorKind::kBuffer, [] { Sample(std::vector<int64_t>(65, 1)).view(); }, "65");
  EXPECT_EQ(64, Sample(std::vector<int64_t>(64, 1)).view().ndim);
  expect_error(ErrorKind::kValue, [] { Sample({2, -3}).view(); }, "-3");
  expect_error(ErrorKind::kValue, [] { Sample({kMin}).view(); }, "negative");
}

TEST(ViewTensor, RefusesOverflow) {
  const std::vector<std::vector<int64_t>> shapes = {
      {kMax}, {kMax / 4 + 1}, {int64_t{1} << 31, int64_t{1} << 31}, {kMax, 0}, {0, kMax, 2}};
  for (const auto& shape : shapes) {
    expect_error(ErrorKind::kValue, [&] { Sample(shape).view(); }, "overflow");
  }
  const std::vector<std::vector<int64_t>> strides = {
      {kMax, 1}, {kMin, 1}, {kMax / 4, kMax / 4}, {kMin / 8, kMin / 4}, {kMax / 8, kMax / 8}};
  for (const auto& each : strides) {
    expect_error(ErrorKind::kValue, [&] { Sample({3, 3}, each).view(); }, "addresses");
  }
  const auto spread = [] { Sample({2, 2}, {kMax / 8, kMin / 8}).view(); };
  expect_error(ErrorKind::kValue, spread, "beyond the address space");
}

TEST(ViewTensor, ForgetsStridesThatReachNothing) {
  EXPECT_EQ((std::vector<int64_t>{3, 3, 1}), strides_of(Sample({2, 0, 3}, {kMin, 7, -1}).view()));
  EXPECT_EQ(1, Sample({1}, {kMin}).view().size());
}

TEST(ViewTensor, RefusesTypesThatArrowCannotCarry) {
  const auto expect_refused = [](DLDataType dtype, const std::string& word) {
    Sample sample({1});
    sample.dtype = dtype;
    expect_error(ErrorKind::kBuffer, [&] { sample.view(); }, word);
  };
  expect_refused({kDLFloat, 32, 4}, "4 lanes");
  expect_refused({kDLFloat, 32, 0}, "0 lanes");
  expect_refused({kDLInt, 3, 1}, "int of 3 bits");
  expect_refused({kDLUInt, 1, 1}, "uint of 1 bits");
  expect_refused({kDLFloat6_e2m3fn, 6, 1}, "float6_e2m3fn");
  expect_refused({kDLFloat4_e2m1fn, 4, 4}, "4 lanes");
  expect_refused({kDLBool, 1, 1}, "bool");
  expect_refused({kDLFloat, 128, 1}, "128");
  expect_refused({200, 8, 1}, "200");
}

TEST(ViewTensor, RefusesUnknownDevices) {
  Sample sample({1});
  sample.device = static_cast<DLDeviceType>(-1);
  expect_error(ErrorKind::kValue, [&] { sample.view(); }, "-1");
}

TEST(TensorView, TellsContiguous) {
  EXPECT_TRUE(Sample({2, 3}, {3, 1}).view().is_contiguous());
  EXPECT_TRUE(Sample({1, 3, 1}, {-7, 1, 99}).view().is_contiguous());
  EXPECT_TRUE(Sample({0, 3}, {5, 7}).view().is_contiguous());
  EXPECT_FALSE(Sample({2, 3}, {1, 2}).view().is_contiguous());
  EXPECT_FALSE(Sample({2, 3}, {4, 1}).view().is_contiguous());
  EXPECT_FALSE(Sample({3}, {0}).view().is_contiguous());
  EXPECT_FALSE(Sample({3}, {-1}).view().is_contiguous());
}

TEST(TensorView, PushesNoMoreThanTheMostDimensions) {
  TensorView view = Sample({}).view();
  for (int32_t d = 0; d < kMaxDims; ++d) view.push_dim(1);
  expect_error(ErrorKind::kBuffer, [&] { view.push_dim(1); }, "64");
}

using Order = std::vector<int32_t>;

TEST(DenseRowOrder, FindsTheOrderInMemory) {
  EXPECT_EQ((Order{0, 1, 2}), dense_row_order(Sample({5, 2, 3}).view()));
  // channels_last: (N, C, H, W) is stored as N, H, W, C.
  EXPECT_EQ((Order{0, 2, 3, 1}), dense_row_order(Sample({5, 2, 3, 4}, {24, 1, 8, 2}).view()));
  EXPECT_EQ((Order{0, 2, 1}), dense_row_order(Sample({5, 3, 3}, {9, 1, 3}).view()));
  EXPECT_EQ((Order{0}), dense_row_order(Sample({5}).view()));
}

TEST(DenseRowOrder, OverlooksTheStridesOfExtentOne) {
  EXPECT_EQ((Order{0, 1, 2, 3}), dense_row_order(Sample({5, 1, 2, 3}, {6, -9, 3, 1}).view()));
  EXPECT_EQ((Order{0, 3, 2, 1}), dense_row_order(Sample({5, 2, 1, 3}, {6, 1, 77, 2}).view()));
  EXPECT_EQ((Order{0, 2, 1}), dense_row_order(Sample({1, 2, 3}, {1000, 1, 2}).view()));
  EXPECT_EQ((Order{0, 2, 1}), dense_row_order(Sample({1, 3, 2}, {-50, 1, 3}).view()));
}

TEST(DenseRowOrder, TakesNothingForDense) {
  EXPECT_EQ((Order{0, 1, 2}), dense_row_order(Sample({0, 2, 3}, {1, 1, 1}).view()));
  EXPECT_EQ((Order{0, 1, 2}), dense_row_order(Sample({3, 0, 2}, {0, 0, -4}).view()));
}

TEST(DenseRowOrder, RefusesGapsOverlapsAndReversal) {
  const auto expect_not_dense = [](std::vector<int64_t> shape, std::vector<int64_t> strides,
                                   const char* reason) {
    EXPECT_EQ(Order{}, dense_row_order(Sample(std::move(shape), std::move(strides)).view()))
        << reason;
  };
  expect_not_dense({5}, {2}, "a gap between rows");
  expect_not_dense({5}, {0}, "broadcast rows");
  expect_not_dense({5}, {-1}, "reversed rows");
  expect_not_dense({5, 3}, {1, 5}, "dimension 0 is not the outermost");
  expect_not_dense({5, 3}, {4, 1}, "a gap after each row");
  expect_not_dense({5, 3}, {6, 2}, "a gap within the row");
  expect_not_dense({5, 2, 3}, {3, 0, 1}, "broadcast within the row");
  expect_not_dense({5, 3}, {3, -1}, "reversed within the row");
  expect_not_dense({5, 3, 3}, {9, 1, 1}, "overlap");
  expect_not_dense({1, 3, 2}, {6, 1, 2}, "overlap in the only row");
}

TEST(DenseRowOrder, HoldsForEveryPermutation) {
  Order order = {1, 2, 3, 4};
  const std::vector<int64_t> shape = {7, 2, 3, 1, 4};
  const auto strides_in = [&](const Order& physical) {
    std::vector<int64_t> strides(shape.size(), 24);
    int64_t stride = 1;
    for (auto d = physical.rbegin(); d != physical.rend(); ++d) {
      strides[static_cast<std::size_t>(*d)] = stride;
      stride *= shape[static_cast<std::size_t>(*d)];
    }
    return strides;
  };
  do {
    const std::vector<int64_t> strides = strides_in(order);
    const Order found = dense_row_order(Sample(shape, strides).view());
    ASSERT_EQ(5u, found.size());
    EXPECT_EQ(0, found[0]);
    EXPECT_TRUE(std::is_permutation(found.begin() + 1, found.end(), order.begin()));
    std::vector<int64_t> rebuilt = strides_in(found);
    rebuilt[3] = strides[3];  // of extent 1
    EXPECT_EQ(strides, rebuilt);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace arrowdl
