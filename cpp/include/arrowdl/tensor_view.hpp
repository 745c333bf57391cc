// A borrowed n-dimensional view of memory, and the strides arithmetic on it.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device.hpp"
#include "arrowdl/dtype.hpp"

namespace arrowdl {

/// Most dimensions a tensor may have here (numpy's limit as well).
constexpr int32_t kMaxDims = 64;

/// A tensor whose memory somebody else owns. Strides are in elements.
struct TensorView {
  const uint8_t* data = nullptr;  ///< element [0, …, 0]
  Device device;
  const Dtype* dtype = nullptr;
  int32_t ndim = 0;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];

  TensorView() noexcept {}  // the arrays stay uninitialised: only ndim entries are ever read

  /// Whether the bytes of the shape, its zeros left out, fit int64_t: what the others count on.
  bool is_countable() const noexcept;
  /// Number of elements.
  int64_t size() const noexcept {
    int64_t product = 1;
    for (int32_t d = 0; d < ndim; ++d) product *= shape[d];
    return product;
  }
  int64_t nbytes() const noexcept { return size() * dtype->itemsize(); }
  /// Adds a dimension inside the last one; strides are set by `set_contiguous_strides`.
  void push_dim(int64_t extent);
  void set_contiguous_strides() noexcept;
  bool is_contiguous() const noexcept;
};

/// Views `tensor`, with byte_offset folded into data and NULL strides (DLPack before 1.2) made
/// explicit. Raises BufferError for what Arrow can't carry (a dtype with no row, too many
/// dimensions, a byte_offset to an opaque handle), ValueError for a malformed struct (negative or
/// overflowing shape, NULL shape, NULL data where there are elements). Where there are no elements
/// the strides are the contiguous ones, whatever `tensor` says.
TensorView view_tensor(const DLTensor& tensor);

/// The order in which the dimensions lie in memory: result[p] is the logical dimension at physical
/// position p, outermost first; result[0] is 0, since rows have to follow one another. Empty when
/// rows are not dense in any order, or there is a gap between them. A tensor without elements is
/// dense in its logical order. `view` has at least one dimension.
std::vector<int32_t> dense_row_order(const TensorView& view);

/// Copies `source` into `target`, contiguous in C order. Host memory only.
void copy_contiguous(const TensorView& source, uint8_t* target);

}  // namespace arrowdl
