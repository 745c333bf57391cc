// Computes the lengths of lists, and checks the shapes of variable_shape_tensor rows.
#include "arrowdl/list_tensors.hpp"

#include <algorithm>

#include "array/host_access.hpp"
#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "compute/make_lists.hpp"
#include "convert/copy_elements_on_device.hpp"
#include "convert/host_tensor.hpp"
#include "device/device_pointer.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE

namespace {

OwnedTensor measure_on_device(const DeviceArray& offsets, const TensorView& view,
                              int64_t max_length, const Order& order) {
  const int64_t itemsize = offsets.type().byte_width;
  KernelWork work(offsets.device(), "measure lists");
  work.use(offsets.storage(), offsets.sync_event());
  const std::shared_ptr<DeviceMemory> lengths = work.allocate_integers(view.shape[0]);
  const uint8_t* first =
      offset_pointer(offsets.device(), offsets.buffer(1), offsets.offset() * itemsize);
  const int64_t count = view.shape[0];
  work.launch(Kernel::kMeasureLists, lengths->address(), count, count, first, itemsize,
              max_length < 0 ? INT64_MAX : max_length, static_cast<int64_t*>(nullptr));
  return make_device_tensor(work, view, lengths, order);
}

}  // namespace

OwnedTensor list_lengths(const ListParts& parts, int64_t max_length, const Order& order) {
  TensorView view;
  view.dtype = find_dtype("int64");
  view.push_dim(parts.offsets.length() - 1);
  view.set_contiguous_strides();
  if (is_read_by_kernels(parts.offsets.device(), "measure lists")) {
    return measure_on_device(parts.offsets, view, max_length, order);
  }
  check_list_offsets(parts.offsets, parts.values.length());
  return make_host_tensor(view, [&](uint8_t* target) {
    auto* lengths = reinterpret_cast<int64_t*>(target);
    visit_list_offsets(parts.offsets, [&](auto zero) {
      const ElementReader<decltype(zero)> offsets(parts.offsets, 1);
      for (int64_t i = 0; i < view.shape[0]; ++i) lengths[i] = offsets[i + 1] - offsets[i];
      if (max_length < 0) return;
      for (int64_t i = 0; i < view.shape[0]; ++i) lengths[i] = std::min(lengths[i], max_length);
    });
  });
}

namespace {

[[noreturn]] void raise_shape_error(int64_t row, const std::string& reason) {
  raise_value_error("malformed variable_shape_tensor array: the shape of row ", row, " ", reason);
}

void check_row(int64_t row, const int32_t* shape, std::size_t ndim, int64_t count,
               const TensorMetadata& tensor) {
  int64_t size = 1;
  for (std::size_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) raise_shape_error(row, "has a negative extent");
    if (!checked_multiply(size, shape[i], &size)) raise_shape_error(row, "overflows");
  }
  if (size != count) {
    raise_shape_error(row, concat("is of ", size, " elements, the row has ", count));
  }
  for (std::size_t i = 0; i < tensor.uniform_shape.size() && size > 0; ++i) {
    if (tensor.uniform_shape[i] && *tensor.uniform_shape[i] != shape[i]) {
      raise_shape_error(row, concat("has ", shape[i], " in dimension ", i, ", uniform_shape says ",
                                    *tensor.uniform_shape[i]));
    }
  }
}

template <typename Offset>
void check_rows(const DeviceArray& offset_array, const OwnedTensor& shapes,
                const TensorMetadata& tensor) {
  const ElementReader<Offset> offsets(offset_array, 1);
  const auto* shape = static_cast<const int32_t*>(shapes->data);
  const auto ndim = static_cast<std::size_t>(shapes->shape[1]);
  for (int64_t row = 0; row < shapes->shape[0]; ++row, shape += ndim) {
    check_row(row, shape, ndim, int64_t{offsets[row + 1]} - offsets[row], tensor);
  }
}

}  // namespace

void check_variable_shapes(const ListParts& parts, const OwnedTensor& shapes,
                           const TensorMetadata& tensor) {
  visit_list_offsets(parts.offsets,
                     [&](auto zero) { check_rows<decltype(zero)>(parts.offsets, shapes, tensor); });
}

ARROWDL_END_NAMESPACE
