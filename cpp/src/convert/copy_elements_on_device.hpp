// New tensors in memory that the host cannot read: made by the device itself. The stream of the
// consumer does it, or one of ours where it has none, after the array's event. A consumer that
// waits by itself has no event to wait for: then the host does.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "convert/array_as_tensor.hpp"

namespace arrowdl {

/// Whether the device can unpack bits and replace nulls.
bool has_kernels(const Device& device);

/// What `copy_elements` does. Raises BufferError where arrowdl has no streams, or no kernels for
/// what has to be done, and for kNan on a type without NaN.
OwnedTensor copy_elements_on_device(const ArrayAsTensor& reading, Nulls nulls, const Order& order);

/// What `unpack_validity` does, as the tensor that `to_mask` gives.
OwnedTensor unpack_validity_on_device(const ArrayAsTensor& reading, const Order& order);

/// The validity of the rows of `array` itself, one byte each, as the tensor that `view` says.
OwnedTensor unpack_row_validity_on_device(const DeviceArray& array, TensorView view,
                                          const Order& order);

}  // namespace arrowdl
