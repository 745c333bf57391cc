// Computes the lengths of lists.
#include <algorithm>

#include "array/host_access.hpp"
#include "array/row_access.hpp"
#include "arrowdl/list_tensors.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "compute/list_offsets.hpp"
#include "convert/device_tensor.hpp"
#include "convert/host_tensor.hpp"
#include "device/device_pointer.hpp"

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

ARROWDL_END_NAMESPACE
