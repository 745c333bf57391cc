// Converts tensors to Arrow arrays.
#include "arrowdl/to_arrow.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "array/host_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "compute/pack_bits.hpp"
#include "convert/copy_tensor.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

bool is_c_order(const std::vector<int32_t>& order) {
  return std::is_sorted(order.begin(), order.end());
}

const char* copy_reason(const TensorView& view, const std::vector<int32_t>& order,
                        const ToArrowOptions& options) {
  if (view.dtype->code == kDLBool && options.bool_as == BoolAs::kBits) {
    return "booleans have to be packed into bits";
  }
  if (order.empty()) {
    return "its rows are not dense in memory (strided, broadcast or reversed)";
  }
  if (options.layout == TensorLayout::kList && !is_c_order(order)) {
    return "nested lists are in C order";
  }
  return nullptr;
}

/// Whether rows of several dimensions are nested lists. Libraries that know fixed_shape_tensor, as
/// pyarrow does, forget the extension types of its values, other than Arrow's own: bfloat16 would
/// become bytes there, and complex numbers pairs.
bool becomes_lists(const TensorView& view, const std::vector<int32_t>& order,
                   const ToArrowOptions& options) {
  if (view.ndim == 1 || options.layout == TensorLayout::kList) return true;
  const bool is_own_type = view.dtype->extension != nullptr && view.dtype->code != kDLBool;
  return options.layout == TensorLayout::kAuto && is_own_type && is_c_order(order);
}

OwnedArray make_node(int64_t length, std::vector<Buffer> buffers,
                     std::vector<OwnedArray> children) {
  ArrayParts parts;
  parts.length = length;
  parts.buffers = std::move(buffers);
  parts.children = std::move(children);
  return make_array(std::move(parts));
}

std::vector<OwnedArray> only(OwnedArray child) {
  std::vector<OwnedArray> children;
  children.push_back(std::move(child));
  return children;
}

void check_times(const TensorView& view) {
  if (view.dtype->code == kDLInt && view.dtype->bits == 64 && view.device.type == kDLCPU) return;
  raise_buffer_error("times are int64 in memory of the CPU, this is ", view.dtype->name, " on ",
                     to_string(view.device));
}

/// Raises for elements that Arrow has only as an extension type.
void check_plain(const Dtype& dtype) {
  if (dtype.extension == nullptr || dtype.code == kDLBool) return;
  raise_buffer_error("extensions=False: ", dtype.name, " is only the extension type ",
                     dtype.extension, " in Arrow: ",
                     dtype.code == kDLComplex ? "view the tensor as pairs of floats first"
                                              : "cast the tensor first, as to float32");
}

OwnedArray make_times(int64_t count, Buffer data) {
  constexpr int64_t kNaT = std::numeric_limits<int64_t>::min();
  const std::string_view item(reinterpret_cast<const char*>(&kNaT), sizeof(kNaT));
  const DeviceArray numbers =
      DeviceArray::make_primitive(*find_dtype("int64"), count, std::move(data), Device{});
  return share_array(values_to_null(numbers, item));
}

/// The array of the elements, apart from the shape.
OwnedArray make_elements(const Dtype& dtype, int64_t count, Buffer data,
                         const ToArrowOptions& options) {
  if (!options.time_format.empty()) return make_times(count, std::move(data));
  if (dtype.code != kDLComplex) return make_node(count, {Buffer(), std::move(data)}, {});
  return make_node(count, {Buffer()}, only(make_node(2 * count, {Buffer(), std::move(data)}, {})));
}

OwnedSchema make_element_schema(const Dtype& dtype, const ToArrowOptions& options,
                                const char* name) {
  if (!options.time_format.empty()) {
    return make_nested_schema(options.time_format.c_str(), {}, name);
  }
  const bool is_bits = dtype.code == kDLBool && options.bool_as == BoolAs::kBits;
  return is_bits ? make_nested_schema("b", {}, name) : make_schema(dtype, name);
}

/// Wraps the elements in one FixedSizeList per dimension below the first.
DeviceArray wrap_lists(const TensorView& view, const ToArrowOptions& options, OwnedArray elements,
                       OwnedEvent event) {
  OwnedSchema schema = make_element_schema(*view.dtype, options, view.ndim == 1 ? "" : "item");
  OwnedArray array = std::move(elements);
  for (int32_t i = view.ndim - 1; i >= 1; --i) {
    if (view.shape[i] > INT32_MAX) {
      raise_buffer_error("dimension ", i, " has ", view.shape[i],
                         " elements; an Arrow FixedSizeList holds at most 2147483647");
    }
    std::vector<OwnedSchema> children;
    children.push_back(std::move(schema));
    schema = make_nested_schema(concat("+w:", view.shape[i]).c_str(), std::move(children),
                                i == 1 ? "" : "item");
    int64_t rows = 1;
    for (int32_t j = 0; j < i; ++j) rows *= view.shape[j];
    array = make_node(rows, {Buffer()}, only(std::move(array)));
  }
  return DeviceArray::import(std::move(schema), std::move(array), view.device, std::move(event));
}

TensorMetadata describe_rows(const TensorView& view, const std::vector<int32_t>& order) {
  TensorMetadata metadata;
  std::vector<int64_t> position(order.size());  // in memory, of each logical dimension
  bool is_permuted = false;
  for (std::size_t i = 1; i < order.size(); ++i) {
    metadata.shape.push_back(view.shape[order[i]]);
    position[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i) - 1;
    is_permuted = is_permuted || order[i] != static_cast<int32_t>(i);
  }
  if (is_permuted) metadata.permutation.assign(position.begin() + 1, position.end());
  return metadata;
}

DeviceArray wrap_fixed_shape(const TensorView& view, const std::vector<int32_t>& order,
                             const ToArrowOptions& options, OwnedArray elements, OwnedEvent event) {
  OwnedSchema schema = make_fixed_shape_tensor_schema(
      make_element_schema(*view.dtype, options, "item"), describe_rows(view, order));
  OwnedArray array = make_node(view.shape[0], {Buffer()}, only(std::move(elements)));
  return DeviceArray::import(std::move(schema), std::move(array), view.device, std::move(event));
}

Buffer share_elements(OwnedTensor tensor, const TensorView& view) {
  return Buffer(std::make_shared<OwnedTensor>(std::move(tensor)), view.data, view.nbytes());
}

/// New memory with the elements in C order, packed into bits if the options say so.
Buffer copy_elements_of(TensorView& view, OwnedTensor tensor, const ToArrowOptions& options,
                        OwnedEvent* event) {
  const bool pack = view.dtype->code == kDLBool && options.bool_as == BoolAs::kBits;
  if (!is_host_readable(view.device) && find_kernels(view.device) != nullptr) {
    return copy_on_own_device(view, std::move(tensor), pack, event);
  }
  Buffer data = copy_to_host(view, std::move(tensor), std::exchange(*event, {}));
  return pack ? pack_bools(view.data, view.size()) : std::move(data);
}

/// Whether the elements are an Arrow array as they are: one dimension, and nothing to copy.
bool is_primitive(const TensorView& view, const ToArrowOptions& options) {
  const DLDataTypeCode code = view.dtype->code;
  return view.ndim == 1 && view.is_contiguous() && options.time_format.empty() &&
         options.copy != Copy::kAlways && code != kDLComplex &&
         (code != kDLBool || options.bool_as == BoolAs::kBool8);
}

}  // namespace

DeviceArray to_arrow(OwnedTensor tensor, const ToArrowOptions& options, OwnedEvent event) {
  TensorView view = view_tensor(tensor);
  if (!options.time_format.empty()) check_times(view);
  if (!options.extensions) check_plain(*view.dtype);
  if (view.ndim == 0) {
    view.push_dim(1);
    view.strides[0] = 1;
  }
  if (is_primitive(view, options)) {
    return DeviceArray::make_primitive(*view.dtype, view.shape[0],
                                       share_elements(std::move(tensor), view), view.device,
                                       std::move(event));
  }
  std::vector<int32_t> order = dense_row_order(view);
  const char* reason = copy_reason(view, order, options);
  if (reason != nullptr && options.copy == Copy::kNever) {
    raise_buffer_error("a tensor of ", view.dtype->name, " with ", view.ndim,
                       " dimensions cannot become an Arrow array without a copy, since ", reason,
                       ": allow it with copy=None, or make it contiguous first");
  }
  const Device home = view.device;
  const bool through_host = goes_through_host(home);
  Buffer data;
  if (reason != nullptr || (options.copy == Copy::kAlways && !through_host)) {
    data = copy_elements_of(view, std::move(tensor), options, &event);
    order = dense_row_order(view);
  } else {
    data = share_elements(std::move(tensor), view);
  }
  OwnedArray elements = make_elements(*view.dtype, view.size(), std::move(data), options);
  DeviceArray array =
      becomes_lists(view, order, options)
          ? wrap_lists(view, options, std::move(elements), std::move(event))
          : wrap_fixed_shape(view, order, options, std::move(elements), std::move(event));
  if (!through_host) return array;
  if (reason != nullptr) return copy_array(array, home);
  return options.copy == Copy::kAlways ? duplicate(array) : array;
}

ARROWDL_END_NAMESPACE
