// Tests tensors that share the memory of an owner.
#include "arrowdl/make_tensor.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace arrowdl {
namespace {

TensorView view_of(const std::vector<float>& values, int64_t rows, int64_t columns) {
  TensorView view;
  view.data = reinterpret_cast<const uint8_t*>(values.data());
  view.dtype = find_dtype("float32");
  view.push_dim(rows);
  view.push_dim(columns);
  view.set_contiguous_strides();
  return view;
}

TEST(MakeTensor, KeepsItsOwnerUntilTheDeleterRuns) {
  const auto values = std::make_shared<std::vector<float>>(6);
  {
    const OwnedTensor tensor = make_tensor(view_of(*values, 2, 3), values, 5);
    EXPECT_EQ(values.use_count(), 2);
    EXPECT_EQ(tensor.flags(), 5U);
    EXPECT_EQ(tensor->data, values->data());
    EXPECT_EQ(tensor->shape[1], 3);
    EXPECT_EQ(tensor->strides[0], 3);
    EXPECT_EQ(tensor.versioned()->version.major, uint32_t{DLPACK_MAJOR_VERSION});
  }
  EXPECT_EQ(values.use_count(), 1);
}

TEST(MakeTensor, AnotherTensorCanBeTheOwner) {
  const auto values = std::make_shared<std::vector<float>>(6);
  OwnedTensor first = make_tensor(view_of(*values, 2, 3), values, 1);
  OwnedTensor second = make_tensor(view_of(*values, 3, 2), std::move(first));
  EXPECT_EQ(second.flags(), 1U);
  EXPECT_EQ(second->shape[0], 3);
  EXPECT_EQ(values.use_count(), 2);
  second.reset();
  EXPECT_EQ(values.use_count(), 1);
}

TEST(MakeTensor, StructsFromBeforeDlpack1) {
  const auto values = std::make_shared<std::vector<float>>(6);
  for (const bool converted : {false, true}) {
    const TensorView view = view_of(*values, 2, 3);
    OwnedTensor tensor =
        converted ? to_legacy(make_tensor(view, values, 1)) : make_legacy_tensor(view, values);
    EXPECT_EQ(tensor.versioned(), nullptr);
    EXPECT_EQ(tensor.flags(), 0U);
    EXPECT_EQ(tensor->data, values->data());
    EXPECT_EQ(values.use_count(), 2);
    DLManagedTensor* raw = tensor.take_legacy();
    raw->deleter(raw);
    EXPECT_EQ(values.use_count(), 1);
  }
}

TEST(MakeTensor, NoElementsHaveNoData) {
  const auto values = std::make_shared<std::vector<float>>(6);
  EXPECT_EQ(make_tensor(view_of(*values, 0, 3), values, 0)->data, nullptr);
}

}  // namespace
}  // namespace arrowdl
