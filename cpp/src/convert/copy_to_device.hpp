// Copies tensors to new memory of their own device.
#pragma once

#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

namespace arrowdl {

/// New memory of the device of `tensor` with its elements in C order, each as a bit if `pack`;
/// `view`, of that tensor, becomes a view of it, which has no meaning for bits. The work follows
/// `*event`, which becomes its own event. Raises BufferError for devices without kernels.
Buffer copy_on_own_device(TensorView& view, OwnedTensor tensor, bool pack, OwnedEvent* event);

}  // namespace arrowdl
