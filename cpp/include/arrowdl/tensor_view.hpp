// A borrowed n-dimensional view of memory, and its strides.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The most dimensions that a tensor may have (numpy's limit too).
constexpr int32_t kMaxDims = 64;

/// A tensor whose memory another object owns. Shape and strides are in elements of Arrow: of
/// packed values the last dimension has `Dtype::values` times as many in DLPack.
struct TensorView {
  const uint8_t* data = nullptr;  ///< element [0, …, 0]
  Device device;
  const Dtype* dtype = nullptr;
  int32_t ndim = 0;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];

  TensorView() noexcept {}  // leaves the arrays uninitialised: only ndim entries are ever read

  /// Whether the bytes and the DLPack elements of the shape, zeros counted as ones, fit int64_t.
  /// The other functions require it.
  bool is_countable() const noexcept;
  /// Number of elements.
  int64_t size() const noexcept {
    int64_t product = 1;
    for (int32_t d = 0; d < ndim; ++d) product *= shape[d];
    return product;
  }
  int64_t nbytes() const noexcept { return size() * dtype->itemsize(); }
  /// Adds a last dimension without its stride: call `set_contiguous_strides`. Raises BufferError
  /// beyond kMaxDims.
  void push_dim(int64_t extent);
  void set_contiguous_strides() noexcept;
  bool is_contiguous() const noexcept;
  /// The extent of dimension `d` in DLPack.
  int64_t extent(int32_t d) const noexcept {
    return shape[d] * (d == ndim - 1 ? dtype->values : 1);
  }
};

/// `length` elements of `dtype` in a row on the CPU.
inline TensorView view_vector(const Dtype& dtype, int64_t length, const uint8_t* data) noexcept {
  TensorView view;
  view.data = data;
  view.dtype = &dtype;
  view.ndim = 1;
  view.shape[0] = length;
  view.strides[0] = 1;
  return view;
}

/// Views `tensor`, with byte_offset added to data and NULL strides (DLPack before 1.2) filled in. A
/// tensor without elements gets contiguous strides. Values of less than a byte are packed unless
/// `is_padded`. Raises BufferError for what Arrow cannot carry (an unsupported dtype, too many
/// dimensions, packed values that do not begin and end with a byte in the last dimension, a
/// byte_offset to an opaque handle), and ValueError for a malformed struct (a negative or
/// overflowing shape, a NULL shape, NULL data).
TensorView view_tensor(const DLTensor& tensor, bool is_padded = false);
/// The same, with the flags of `tensor`.
TensorView view_tensor(const OwnedTensor& tensor);

/// The order of the dimensions in memory, outermost first: result[p] is the logical dimension at
/// physical position p. result[0] is 0, since rows must follow one another. Empty when rows are not
/// dense in any order, or have gaps between them. A tensor without elements is dense in its logical
/// order. Requires at least one dimension.
std::vector<int32_t> dense_row_order(const TensorView& view);

/// Copies `source` to `target`, contiguous in C order. Raises BufferError unless the host can read
/// `source`.
void copy_contiguous(const TensorView& source, uint8_t* target);

ARROWDL_END_NAMESPACE
