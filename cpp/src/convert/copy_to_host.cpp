// Copies tensors to new host memory in C order.
#include "convert/copy_to_host.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "array/host_access.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
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
