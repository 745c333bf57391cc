// Tensors into a framework by its DLPack C exchange API, and arrowdl's own exchange API.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/device.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// `tensor` as an object of the framework whose exchange API it is.
pybind11::object to_object(const DLPackExchangeAPI& api, OwnedTensor tensor);

/// `tensor`, which the host can read, in memory of `device` that the framework allocates: the
/// stream of its work there copies. Raises BufferError where the framework has no such memory or
/// arrowdl no runtime to copy with.
OwnedTensor copy_by(const DLPackExchangeAPI& api, OwnedTensor tensor, const Device& device);

/// Our own exchange API, in a capsule, for `DeviceArray.__dlpack_c_exchange_api__`.
pybind11::object make_exchange_api();

}  // namespace arrowdl::python
