// Copies tensors with any strides to memory of their own device.
#pragma once

#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "sync/kernel_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// New memory of the device of `tensor` with its elements in C order, each as a bit if `pack`;
/// `view`, of that tensor, becomes a view of it, which has no meaning for bits. The work follows
/// `*event`, which becomes its own event. Raises BufferError for devices without kernels.
Buffer copy_on_own_device(TensorView& view, OwnedTensor tensor, bool pack, OwnedEvent* event);

/// Copies the elements of `view` in C order to `target`, where the entries of dimension 0 are
/// `row_stride` bytes apart. Requires elements.
void copy_rows_on_device(KernelWork& work, const TensorView& view, uint8_t* target,
                         int64_t row_stride);

ARROWDL_END_NAMESPACE
