// Tests tensors of values of less than a byte: packed, and padded to bytes.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "arrowdl/make_tensor.hpp"
#include "arrowdl/tensor_view.hpp"
#include "support/expect_error.hpp"

namespace arrowdl::testing {
namespace {

using Dims = std::vector<int64_t>;

/// A tensor of uint4 unless `dtype` is set.
struct Packed {
  Dims shape;
  Dims strides = {};
  DLDataType dtype = {kDLUInt, 4, 1};
  bool is_padded = false;
  uint8_t memory[64] = {};

  TensorView view() {
    const DLTensor tensor{memory, {kDLCPU, 0},  static_cast<int32_t>(shape.size()),
                          dtype,  shape.data(), strides.empty() ? nullptr : strides.data(),
                          0};
    return view_tensor(tensor, is_padded);
  }
};

Dims shape_of(const TensorView& view) { return {view.shape, view.shape + view.ndim}; }
Dims strides_of(const TensorView& view) { return {view.strides, view.strides + view.ndim}; }

/// The tensor that a view is exported as, and its dimensions.
struct Exported {
  explicit Exported(const TensorView& view)
      : tensor(make_tensor(view, std::make_shared<int>(0), 0)),
        shape(tensor->shape, tensor->shape + tensor->ndim),
        strides(tensor->strides, tensor->strides + tensor->ndim) {}
  OwnedTensor tensor;
  Dims shape;
  Dims strides;
};

TEST(PackedValues, AreCountedInWholeBytes) {
  Packed packed{{3, 4}};
  const TensorView view = packed.view();
  EXPECT_STREQ(view.dtype->name, "uint4");
  EXPECT_EQ(shape_of(view), (Dims{3, 2}));
  EXPECT_EQ(strides_of(view), (Dims{2, 1}));
  EXPECT_EQ(view.nbytes(), 6);
  EXPECT_EQ(view.extent(0), 3);
  EXPECT_EQ(view.extent(1), 4);
  EXPECT_EQ((Packed{{8}, {}, {kDLInt, 2, 1}}.view().nbytes()), 2);
}

TEST(PackedValues, ComeBackAsTheyWere) {
  for (const DLDataType dtype :
       {DLDataType{kDLInt, 4, 1}, DLDataType{kDLUInt, 2, 1}, DLDataType{kDLFloat4_e2m1fn, 4, 1}}) {
    for (const Dims& shape : {Dims{4}, Dims{3, 4}, Dims{2, 3, 8}, Dims{0, 4}, Dims{2, 0}}) {
      Packed packed{shape, {}, dtype};
      const Exported back(packed.view());
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.strides.back(), 1);
      EXPECT_EQ(back.tensor->dtype.code, dtype.code);
      EXPECT_EQ(back.tensor->dtype.bits, dtype.bits);
      EXPECT_EQ(back.tensor->dtype.lanes, 1);
      EXPECT_EQ(back.tensor.flags(), 0U);
    }
  }
  Packed strided{{2, 3, 4}, {4, 16, 1}};  // the rows of a permuted tensor begin with a byte
  EXPECT_EQ(strides_of(strided.view()), (Dims{2, 8, 1}));
  EXPECT_EQ(Exported(strided.view()).strides, (Dims{4, 16, 1}));
  Packed backwards{{2, 4}, {-4, 1}};
  EXPECT_EQ(strides_of(backwards.view()), (Dims{-2, 1}));
}

TEST(PackedValues, AreRefusedUnlessTheyBeginAndEndWithAByte) {
  const auto expect_refused = [](Dims shape, Dims strides, const char* word) {
    Packed packed{std::move(shape), std::move(strides)};
    expect_error(ErrorKind::kBuffer, word, [&] { packed.view(); });
    expect_error(ErrorKind::kBuffer, "view its bytes as uint8", [&] { packed.view(); });
  };
  expect_refused({}, {}, "no dimensions");
  expect_refused({3}, {}, "a last dimension of 3");
  expect_refused({2, 3}, {}, "a last dimension of 3");
  expect_refused({0, 3}, {}, "a last dimension of 3");
  expect_refused({4}, {2}, "a stride of 2 in its last dimension");
  expect_refused({4}, {0}, "a stride of 0 in its last dimension");
  expect_refused({4}, {-1}, "a stride of -1 in its last dimension");
  expect_refused({2, 4}, {5, 1}, "a stride of 5 in dimension 0");
  expect_refused({2, 4}, {1, 2}, "a stride of 1 in dimension 0");  // transposed
  EXPECT_EQ((Packed{{1, 4}, {5, 1}}.view().size()), 2);  // the stride of one row means nothing
}

TEST(PackedValues, OfMoreThanInt64AreRefused) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() / 2 + 1;
  Packed packed{{0, kHuge}};
  EXPECT_EQ(Exported(packed.view()).shape, (Dims{0, kHuge}));
  TensorView view = packed.view();
  view.shape[1] = kHuge;
  expect_error(ErrorKind::kBuffer, "too many values", [&] { Exported{view}; });
}

TEST(PackedValues, OfAnotherDimensionThanTheLastAreNotExported) {
  TensorView view = Packed{{2, 4}}.view();
  view.strides[0] = 1;
  view.strides[1] = 2;
  expect_error(ErrorKind::kBuffer, "another dimension than the last", [&] { Exported{view}; });
}

TEST(PackedValues, AreCopiedByBytes) {
  Packed packed{{2, 4}, {8, 1}};
  for (int i = 0; i < 6; ++i) packed.memory[i] = static_cast<uint8_t>(0x10 * i + i + 1);
  uint8_t target[4] = {};
  copy_contiguous(packed.view(), target);
  EXPECT_EQ(std::vector<uint8_t>(target, target + 4),
            (std::vector<uint8_t>{0x01, 0x12, 0x45, 0x56}));
}

TEST(PaddedValues, KeepTheirFlag) {
  Packed padded{{2, 3}, {}, {kDLFloat6_e3m2fn, 6, 1}, true};
  const TensorView view = padded.view();
  EXPECT_EQ(shape_of(view), (Dims{2, 3}));
  EXPECT_EQ(view.nbytes(), 6);
  const Exported back(view);
  EXPECT_EQ(back.shape, (Dims{2, 3}));
  EXPECT_EQ(back.tensor.flags(), DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
  EXPECT_STREQ(view_tensor(back.tensor).dtype->name, "float6_e3m2fn_padded");
}

TEST(PaddedValues, HaveNoTensorFromBeforeTheFlag) {
  Packed padded{{2, 3}, {}, {kDLInt, 4, 1}, true};
  expect_error(ErrorKind::kBuffer, "max_version=(1, 1)",
               [&] { make_legacy_tensor(padded.view(), std::make_shared<int>(0)); });
}

TEST(PaddedValues, MayHaveAnyStrides) {
  Packed padded{{2, 3}, {1, 2}, {kDLInt, 4, 1}, true};
  EXPECT_EQ(strides_of(padded.view()), (Dims{1, 2}));
  Packed bytes{{2, 3}, {}, {kDLUInt, 8, 1}, true};  // the flag means nothing to whole bytes
  EXPECT_STREQ(bytes.view().dtype->name, "uint8");
  EXPECT_EQ(Exported(bytes.view()).tensor.flags(), 0U);
}

}  // namespace
}  // namespace arrowdl::testing
