// Makes tensors of new device memory that kernels write.
#include "convert/device_tensor.hpp"

#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/make_tensor.hpp"
#include "convert/array_as_tensor.hpp"
#include "convert/copy_elements_on_device.hpp"

ARROWDL_BEGIN_NAMESPACE

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

OwnedTensor read_elements(KernelWork& work, const DeviceArray& array, Nulls nulls) {
  if (array.type().layout == Layout::kRunEndEncoded) {
    return read_elements(work, decode_run_ends(array), nulls);
  }
  const ArrayAsTensor reading = view_as_tensor(array);
  const bool fills = replaces_nulls(reading, nulls);
  const bool is_bool = reading.view.dtype->code == kDLBool;  // bits, or bytes other than 0 and 1
  if (is_bool || fills) {
    const Order order{Order::kStream, work.stream(), work.stream_owner()};
    return copy_elements_on_device(reading, fills ? nulls : Nulls::kKeep, order);
  }
  // The stream is not recorded, as it would be for a consumer: `work` holds the memory.
  work.use(array.storage(), array.sync_event());
  return make_tensor(reading.view, array.storage(), DLPACK_FLAG_BITMASK_READ_ONLY);
}

ARROWDL_END_NAMESPACE
