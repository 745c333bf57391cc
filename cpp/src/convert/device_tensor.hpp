// Makes tensors of new device memory that kernels write.
#pragma once

#include <memory>

#include "arrowdl/device_array.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "sync/kernel_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The tensor `view` of `memory`, which is ready after the work so far; the consumer is ordered
/// after it as `order` says. IS_COPIED is set. The host waits if the consumer has no stream.
OwnedTensor make_device_tensor(KernelWork& work, TensorView view,
                               const std::shared_ptr<DeviceMemory>& memory, const Order& order);

/// The elements of `array`, of a type that is one tensor or run ends of one, for `work`, which
/// reads them after its event: the array's own memory, or new memory where bools are
/// unpacked or rewritten, or nulls are replaced. Raises BufferError for nulls that `nulls` refuses.
OwnedTensor read_elements(KernelWork& work, const DeviceArray& array, Nulls nulls);

ARROWDL_END_NAMESPACE
