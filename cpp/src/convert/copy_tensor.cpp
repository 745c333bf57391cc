// Copies tensors with any strides in C order: to memory of their own device, or of the host.
#include "convert/copy_tensor.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "array/host_access.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "compute/pack_bits.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The dimensions of a copy: length, stride of the target, stride of the source, in bytes.
std::vector<int64_t> list_dims(const TensorView& view, int64_t unit, int64_t row_stride) {
  const int64_t itemsize = view.dtype->itemsize();
  std::vector<int64_t> dims;
  int64_t inner = view.nbytes();  // of one entry of the dimension
  for (int32_t d = 0; d < view.ndim; ++d) {
    inner /= view.shape[d];
    if (view.shape[d] == 1) continue;
    const int64_t target_stride = d == 0 ? row_stride : inner;
    const int64_t source_stride = view.strides[d] * itemsize;
    const std::size_t end = dims.size();
    if (end > 0 && dims[end - 2] == target_stride * view.shape[d] &&
        dims[end - 1] == source_stride * view.shape[d]) {  // one dimension with the last
      dims[end - 3] *= view.shape[d];
      dims[end - 2] = target_stride;
      dims[end - 1] = source_stride;
    } else {
      dims.insert(dims.end(), {view.shape[d], target_stride, source_stride});
    }
  }
  if (unit < itemsize) dims.insert(dims.end(), {itemsize / unit, unit, unit});
  return dims;
}

}  // namespace

void copy_rows_on_device(KernelWork& work, const TensorView& view, uint8_t* target,
                         int64_t row_stride) {
  if (view.is_contiguous() && row_stride * view.shape[0] == view.nbytes()) {
    work.copy(target, view.data, view.nbytes());
    return;
  }
  const int64_t itemsize = view.dtype->itemsize();
  const int64_t unit = find_unit({to_address(view.data), to_address(target), itemsize, row_stride});
  std::vector<int64_t> dims = list_dims(view, unit, row_stride);
  const auto ndim = static_cast<int64_t>(dims.size() / 3);
  const int64_t table = work.upload(std::move(dims));
  work.launch(Kernel::kCopyStrided, target, view.nbytes() / unit, to_address(view.data), unit, ndim,
              table);
}

Buffer copy_on_own_device(TensorView& view, OwnedTensor tensor, bool pack, OwnedEvent* event) {
  KernelWork work(view.device, pack ? "pack booleans" : "copy a tensor");
  work.use(std::make_shared<OwnedTensor>(std::move(tensor)), event->handle());
  Buffer made;
  if (!pack || !view.is_contiguous()) {
    const std::shared_ptr<DeviceMemory> memory = work.allocate(view.nbytes());
    if (view.size() > 0) {
      copy_rows_on_device(work, view, memory->address(), view.nbytes() / view.shape[0]);
    }
    view.data = memory->address();
    view.set_contiguous_strides();
    made = to_buffer(memory, view.nbytes());
  }
  if (pack) made = pack_on_device(work, view.data, view.size(), 1, BitRule{});
  *event = work.record();
  return made;
}

namespace {

/// A copy on the host of the memory that `view` of `tensor` spans; `view` becomes a view of it.
DeviceArray copy_span(TensorView& view, OwnedTensor tensor, OwnedEvent event) {
  const int64_t itemsize = view.dtype->itemsize();
  int64_t before = 0;  // the first element of the view, in bytes
  int64_t size = view.size() == 0 ? 0 : itemsize;
  for (int32_t d = 0; d < view.ndim && size > 0; ++d) {
    const int64_t reach = (view.shape[d] - 1) * view.strides[d] * itemsize;
    before += std::max<int64_t>(0, -reach);
    size += std::abs(reach);
  }
  Buffer bytes(std::make_shared<OwnedTensor>(std::move(tensor)), view.data - before, size);
  DeviceArray copy =
      copy_array(DeviceArray::make_primitive(*find_dtype("uint8"), size, std::move(bytes),
                                             view.device, std::move(event)),
                 Device{});
  view.data = copy.buffer_as<uint8_t>(1) + before;
  view.device = Device{};
  return copy;
}

}  // namespace

Buffer copy_to_host(TensorView& view, OwnedTensor tensor, OwnedEvent event) {
  DeviceArray copy;
  if (is_read_as_copy(view.device)) {
    copy = copy_span(view, std::move(tensor), std::move(event));
  } else if (!is_host_readable(view.device)) {
    raise_buffer_error("a tensor on ", to_string(view.device),
                       " would have to be copied there to "
                       "be dense: make it contiguous in its own library first");
  }
  uint8_t* target;
  Buffer buffer = Buffer::allocate(view.nbytes(), &target);
  synchronize_event(view.device, event.handle());
  copy_contiguous(view, target);
  view.data = target;
  view.device = Device{};
  view.set_contiguous_strides();
  return buffer;
}

ARROWDL_END_NAMESPACE
