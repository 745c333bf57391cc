// Checks and views DLPack tensors, and tells the order of their dimensions.
#include "arrowdl/tensor_view.hpp"

#include <algorithm>
#include <numeric>

#include "arrowdl/error.hpp"
#include "device/device_pointer.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

const Dtype* require_dtype(DLDataType type, bool is_padded) {
  const Dtype* dtype = find_dtype(type, is_padded);
  if (dtype != nullptr) return dtype;
  if (type.lanes != 1 && type.bits >= 8) {
    raise_buffer_error("a tensor of ", to_string(type),
                       " has no Arrow type: only 1 lane is supported; view the lanes as a last "
                       "dimension of the tensor");
  }
  raise_buffer_error(
      "a tensor of ", to_string(type), is_padded ? ", padded," : "",
      " has no Arrow type: supported are bool, int and uint of 2, 4 and 8 to 64 bits, float of 16 "
      "to 64 bits, bfloat16, float8 in all its forms, float4_e2m1fn alone and with 2 lanes, float6 "
      "if it is padded, complex64 and complex128; cast it, or view the bytes of packed elements as "
      "uint8");
}

void check_dimensions(const DLTensor& tensor) {
  if (tensor.ndim < 0) raise_value_error("malformed tensor: ndim is ", tensor.ndim);
  if (tensor.ndim > kMaxDims) {
    raise_buffer_error("a tensor of ", tensor.ndim, " dimensions: at most ", kMaxDims,
                       " are supported; reshape it");
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    raise_value_error("malformed tensor: shape is NULL where ndim is ", tensor.ndim);
  }
}

[[noreturn]] void raise_split_byte(const TensorView& view, const std::string& what) {
  const int values = view.dtype->values;
  raise_buffer_error(
      "a packed tensor of ", view.dtype->name, " ", what,
      ", and Arrow's elements are whole bytes: make it contiguous, with a multiple of ", values,
      " values in its last dimension, cast it, or view its bytes as uint8");
}

/// Counts packed values in whole bytes.
void pack_shape(TensorView* view) {
  const int values = view->dtype->values;
  if (values == 1) return;
  if (view->ndim == 0) raise_split_byte(*view, "has no dimensions");
  int64_t& last = view->shape[view->ndim - 1];
  if (last % values != 0) raise_split_byte(*view, concat("has a last dimension of ", last));
  last /= values;
}

void copy_shape(const DLTensor& tensor, TensorView* view) {
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] < 0) {
      raise_value_error("malformed tensor: dimension ", d, " has the negative extent ",
                        tensor.shape[d]);
    }
    view->shape[d] = tensor.shape[d];
  }
  view->ndim = tensor.ndim;
  pack_shape(view);
  if (!view->is_countable()) {
    raise_value_error("malformed tensor: the bytes of its shape overflow int64");
  }
}

/// The stride of dimension `d` in elements of Arrow.
int64_t pack_stride(const TensorView& view, int32_t d, int64_t stride) {
  const int values = view.dtype->values;
  if (values == 1) return stride;
  if (d == view.ndim - 1) {
    if (stride == 1) return 1;
    raise_split_byte(view, concat("has a stride of ", stride, " in its last dimension"));
  }
  if (view.shape[d] > 1 && stride % values != 0) {
    raise_split_byte(view, concat("has a stride of ", stride, " in dimension ", d));
  }
  return stride / values;
}

/// The bytes from element [0, …, 0] to the lowest element, and to the highest one.
struct Reach {
  int64_t lowest = 0;
  int64_t highest = 0;
};

/// Copies the strides, and checks that the elements' distances in bytes fit int64_t.
Reach copy_strides(const DLTensor& tensor, TensorView* view) {
  Reach reached;
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    const int64_t stride = pack_stride(*view, d, tensor.strides[d]);
    int64_t reach = 0;
    int64_t* end = stride < 0 ? &reached.lowest : &reached.highest;
    if (view->shape[d] > 1 &&
        (!checked_multiply(stride, view->dtype->itemsize(), &reach) ||
         !checked_multiply(reach, view->shape[d] - 1, &reach) || !checked_add(*end, reach, end))) {
      raise_value_error(
          "malformed tensor: the addresses of its elements overflow int64 at "
          "dimension ",
          d, " of extent ", view->shape[d], " and stride ", stride);
    }
    view->strides[d] = stride;
  }
  return reached;
}

/// Raises unless the elements from the lowest to the highest one are within the address space.
void check_addresses(const TensorView& view, const Reach& reached) {
  const auto first = reinterpret_cast<uintptr_t>(view.data);
  const uint64_t before = uint64_t{0} - static_cast<uint64_t>(reached.lowest);
  const uint64_t span = before + static_cast<uint64_t>(reached.highest);
  if (before <= first && span <= uint64_t{kAddressSpace} &&
      is_addressable(reinterpret_cast<const void*>(first - before),
                     static_cast<int64_t>(span) + view.dtype->itemsize())) {
    return;
  }
  raise_value_error("malformed tensor: its elements, from ", reached.lowest, " to ",
                    reached.highest, " bytes after address ", static_cast<const void*>(view.data),
                    ", are beyond the address space");
}

const uint8_t* element_zero(const DLTensor& tensor, const TensorView& view) {
  if (tensor.data == nullptr) {
    if (view.size() == 0) return nullptr;
    raise_value_error("malformed tensor: data is NULL with ", view.size(),
                      " elements; a fake or meta tensor has no memory to exchange");
  }
  if (tensor.byte_offset > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    raise_value_error("malformed tensor: byte_offset ", tensor.byte_offset, " overflows int64");
  }
  const auto offset = static_cast<int64_t>(tensor.byte_offset);
  if (!is_addressable(tensor.data, offset)) {
    raise_value_error("malformed tensor: byte_offset ", tensor.byte_offset,
                      " ends beyond the address space");
  }
  return offset_pointer(view.device, tensor.data, offset);
}

}  // namespace

bool TensorView::is_countable() const noexcept {
  int64_t product = std::max<int64_t>(dtype->itemsize(), dtype->values);
  for (int32_t d = 0; d < ndim; ++d) {
    if (!checked_multiply(product, std::max<int64_t>(shape[d], 1), &product)) return false;
  }
  return true;
}

void TensorView::push_dim(int64_t extent) {
  if (ndim == kMaxDims) {
    raise_buffer_error("more than ", kMaxDims, " dimensions, more than a tensor may have; ",
                       "flatten the inner lists");
  }
  shape[ndim++] = extent;
}

void TensorView::set_contiguous_strides() noexcept {
  int64_t stride = 1;
  for (int32_t d = ndim - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
}

bool TensorView::is_contiguous() const noexcept {
  int64_t expected = 1;
  bool contiguous = true;
  for (int32_t d = ndim - 1; d >= 0; --d) {
    if (shape[d] == 0) return true;
    if (shape[d] == 1) continue;
    contiguous = contiguous && strides[d] == expected;
    expected *= shape[d];
  }
  return contiguous;
}

TensorView view_tensor(const OwnedTensor& tensor) {
  return view_tensor(*tensor, (tensor.flags() & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0);
}

TensorView view_tensor(const DLTensor& tensor, bool is_padded) {
  check_dimensions(tensor);
  TensorView view;
  view.device = from_dl_device(tensor.device);
  view.dtype = require_dtype(tensor.dtype, is_padded);
  copy_shape(tensor, &view);
  // The strides of a tensor without elements are undefined.
  const int64_t size = view.size();
  Reach reached{0, std::max<int64_t>(size - 1, 0) * view.dtype->itemsize()};
  if (tensor.strides == nullptr || size == 0) {
    view.set_contiguous_strides();
  } else {
    reached = copy_strides(tensor, &view);
  }
  view.data = element_zero(tensor, view);
  if (size > 0) check_addresses(view, reached);
  return view;
}

std::vector<int32_t> dense_row_order(const TensorView& view) {
  std::vector<int32_t> order(static_cast<std::size_t>(view.ndim));
  std::iota(order.begin(), order.end(), 0);
  if (view.is_contiguous()) return order;

  // The stride of a dimension of extent 1 does not matter: such dimensions keep their position, and
  // the others are sorted by stride into the remaining positions.
  std::vector<int32_t> moving;
  for (int32_t d = 1; d < view.ndim; ++d) {
    if (view.shape[d] > 1) moving.push_back(d);
  }
  std::vector<int32_t> sorted = moving;
  // Not std::stable_sort: libstdc++ 12's calls a function that C++20 deprecates.
  std::sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    return view.strides[a] != view.strides[b] ? view.strides[a] > view.strides[b] : a < b;
  });
  for (std::size_t i = 0; i < moving.size(); ++i) {
    order[static_cast<std::size_t>(moving[i])] = sorted[i];
  }

  int64_t expected = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (view.shape[*d] == 1) continue;
    if (view.strides[*d] != expected) return {};
    expected *= view.shape[*d];
  }
  return order;
}

ARROWDL_END_NAMESPACE
