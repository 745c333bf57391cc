// Exports tensors by a framework's DLPack C exchange API, and fills arrowdl's own.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/device.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// `tensor` as an object of the framework of `api`.
pybind11::object to_object(const DLPackExchangeAPI& api, OwnedTensor tensor);

/// New memory of the framework for `size` elements. Needs the GIL, unless the framework's allocator
/// does not, as torch's. Raises MemoryError and BufferError.
OwnedTensor allocate_by(const DLPackExchangeAPI& api, const Dtype& dtype, int64_t size,
                        const Device& device);

/// Copies `tensor`, which the host can read, to memory of `device` that the framework allocates, on
/// the framework's current stream. Raises BufferError if the framework cannot allocate it or
/// arrowdl has no runtime to copy with.
OwnedTensor copy_by(const DLPackExchangeAPI& api, OwnedTensor tensor, const Device& device);

/// Our own exchange API, in a capsule, for `DeviceArray.__dlpack_c_exchange_api__`.
pybind11::object make_exchange_api();

}  // namespace arrowdl::python
