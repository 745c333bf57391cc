// Makes tensors of new device memory that kernels write.
#pragma once

#include <memory>

#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "sync/kernel_work.hpp"

namespace arrowdl {

/// The tensor `view` of `memory`, which is ready after the work so far; the consumer is ordered
/// after it as `order` says. IS_COPIED is set. The host waits if the consumer has no stream.
OwnedTensor make_device_tensor(KernelWork& work, TensorView view,
                               const std::shared_ptr<DeviceMemory>& memory, const Order& order);

/// Orders what `work` does after what it is given by functions with an Order.
inline Order order_of(const KernelWork& work) {
  return {Order::kStream, work.stream(), work.stream_owner()};
}

}  // namespace arrowdl
