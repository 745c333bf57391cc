// Makes new tensors in memory that the host cannot read. The work runs on the consumer's stream, or
// on one of arrowdl's, after the array's event. The host waits for it if the consumer has no
// stream.
#pragma once

#include <memory>

#include "arrowdl/device_array.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "convert/array_as_tensor.hpp"
#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// As `copy_elements`; bools keep their bytes on devices without kernels. Raises BufferError on
/// devices without streams, or without the kernels that are needed, and for kNan on a type without
/// NaN.
OwnedTensor copy_elements_on_device(const ArrayAsTensor& reading, const Nulls& nulls,
                                    const Order& order);

/// A copy of the dense `view`, a part of `array`. Raises BufferError on devices without streams.
OwnedTensor copy_view_on_device(const DeviceArray& array, const TensorView& view,
                                const Order& order);

/// As `unpack_validity`. Returns the tensor of `to_mask`.
OwnedTensor unpack_validity_on_device(const ArrayAsTensor& reading, const Order& order);

/// The validity of the rows of `array` itself, one byte each, as a tensor of the shape of `view`.
OwnedTensor unpack_row_validity_on_device(const DeviceArray& array, TensorView view,
                                          const Order& order);

/// The tensor `view` of `memory`, which is ready after the work so far; the consumer is ordered
/// after it as `order` says. IS_COPIED is set. The host waits if the consumer has no stream.
OwnedTensor make_device_tensor(KernelWork& work, TensorView view,
                               const std::shared_ptr<DeviceMemory>& memory, const Order& order);

/// The elements of `array`, of a type that is one tensor or run ends of one, for `work`, which
/// reads them after its event: the array's own memory, or new memory where bools are
/// unpacked or rewritten, or nulls are replaced. Raises BufferError for nulls that `nulls` refuses.
OwnedTensor read_elements(KernelWork& work, const DeviceArray& array, const Nulls& nulls);

ARROWDL_END_NAMESPACE
