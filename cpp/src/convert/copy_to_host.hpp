// Copies tensors to new host memory in C order.
#pragma once

#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

ARROWDL_BEGIN_NAMESPACE

/// New host memory with the elements of `tensor` in C order; `view`, of that tensor, becomes a view
/// of it. Waits for `event`. From a device it copies all bytes from the first to the last element.
/// Raises BufferError for memory that the host can neither read nor copy.
Buffer copy_to_host(TensorView& view, OwnedTensor tensor, OwnedEvent event);

ARROWDL_END_NAMESPACE
