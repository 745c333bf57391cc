// Copies tensors to new host memory in C order.
#include "convert/copy_to_host.hpp"

#include "arrowdl/error.hpp"

namespace arrowdl {

Buffer copy_to_host(TensorView& view, const OwnedEvent& event) {
  if (!is_host_readable(view.device)) {
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

}  // namespace arrowdl
