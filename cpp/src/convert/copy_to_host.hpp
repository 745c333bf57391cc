// Copies tensors to new host memory in C order.
#pragma once

#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

namespace arrowdl {

/// New host memory with the tensor in C order; `view` becomes a view of it. Waits for `event`.
/// Raises BufferError for memory that the host cannot read.
Buffer copy_to_host(TensorView& view, const OwnedEvent& event);

}  // namespace arrowdl
