// Makes new tensors in memory that the host cannot read. The work runs on the consumer's stream, or
// on one of arrowdl's, after the array's event. The host waits for it if the consumer has no
// stream.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "convert/array_as_tensor.hpp"

ARROWDL_BEGIN_NAMESPACE

/// As `copy_elements`; bools keep their bytes on devices without kernels. Raises BufferError on
/// devices without streams, or without the kernels that are needed, and for kNan on a type without
/// NaN.
OwnedTensor copy_elements_on_device(const ArrayAsTensor& reading, Nulls nulls, const Order& order);

/// A copy of the dense `view`, a part of `array`. Raises BufferError on devices without streams.
OwnedTensor copy_view_on_device(const DeviceArray& array, const TensorView& view,
                                const Order& order);

/// As `unpack_validity`. Returns the tensor of `to_mask`.
OwnedTensor unpack_validity_on_device(const ArrayAsTensor& reading, const Order& order);

/// The validity of the rows of `array` itself, one byte each, as a tensor of the shape of `view`.
OwnedTensor unpack_row_validity_on_device(const DeviceArray& array, TensorView view,
                                          const Order& order);

ARROWDL_END_NAMESPACE
