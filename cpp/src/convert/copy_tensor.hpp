// Copies tensors with any strides in C order: to memory of their own device, or of the host.
#pragma once

#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// New memory of the device of `tensor` with its elements in C order, each as a bit if `pack`;
/// `view`, of that tensor, becomes a view of it, which has no meaning for bits. The work follows
/// `*event`, which becomes its own event. Raises BufferError for devices without kernels.
Buffer copy_on_own_device(TensorView& view, OwnedTensor tensor, bool pack, OwnedEvent* event);

/// Copies the elements of `view` in C order to `target`, where the entries of dimension 0 are
/// `row_stride` bytes apart. Requires elements.
void copy_rows_on_device(KernelWork& work, const TensorView& view, uint8_t* target,
                         int64_t row_stride);

/// New host memory with the elements of `tensor` in C order; `view`, of that tensor, becomes a view
/// of it. Waits for `event`. From a device it copies all bytes from the first to the last element.
/// Raises BufferError for memory that the host can neither read nor copy.
Buffer copy_to_host(TensorView& view, OwnedTensor tensor, OwnedEvent event);

ARROWDL_END_NAMESPACE
