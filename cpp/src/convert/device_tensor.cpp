// Makes tensors of new device memory that kernels write.
#include "convert/device_tensor.hpp"

#include "arrowdl/device_array.hpp"
#include "arrowdl/make_tensor.hpp"

namespace arrowdl {

OwnedTensor make_device_tensor(KernelWork& work, TensorView view,
                               const std::shared_ptr<DeviceMemory>& memory, const Order& order) {
  view.data = memory->address();
  view.device = work.device();
  const int64_t size = view.nbytes();
  const DeviceArray made = DeviceArray::make_primitive(
      *find_dtype("uint8"), size, to_buffer(memory, size), work.device(), work.record());
  if (order.kind == Order::kNone) made.synchronize();
  order_consumer(made, order);
  return make_tensor(view, made.storage(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

}  // namespace arrowdl
