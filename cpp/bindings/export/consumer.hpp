// Keeps the memory of a tensor for the work of a consumer that only passed the number of a stream.
#pragma once

#include "arrowdl/device.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

namespace arrowdl::python {

/// `tensor`, which is versioned and on `device`, for a consumer that `order` has ordered. If its
/// stream is borrowed, the memory is released after the work that the stream holds when the
/// consumer deletes the tensor: later the stream may be gone. If the stream is one that JAX waits
/// for, and on which it does not compute, after all work of JAX on the device.
OwnedTensor hold_for_consumer(OwnedTensor tensor, const Device& device, const Order& order);

/// Whether the consumer that `order` has ordered is JAX, which cannot use memory at the address of
/// `view`.
bool must_align_for(const TensorView& view, const Device& device, const Order& order);

}  // namespace arrowdl::python
