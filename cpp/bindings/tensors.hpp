// Tensors out of and into Python objects, by every door that DLPack has.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/convert.hpp"

namespace arrowdl::python {

/// The C exchange API of `type` (DLPack 1.3), or nullptr when it has none of our major version.
const DLPackExchangeAPI* find_exchange_api(PyTypeObject* type);

/// Whether `object` can be taken by `take_tensor_of`.
bool is_tensor(PyObject* object);

/// The tensor of a producer: exchange API, `__dlpack__` of any vintage, a raw capsule, or where
/// there is nothing better the buffer protocol. Raises what the producer raises, BufferError for
/// what its own exporter would refuse.
OwnedTensor take_tensor_of(PyObject* object, Copy copy);

/// `tensor` as an object of the framework whose exchange API it is.
pybind11::object to_object(const DLPackExchangeAPI& api, OwnedTensor tensor);

/// Our own exchange API, in a capsule, for `DeviceArray.__dlpack_c_exchange_api__`.
pybind11::object make_exchange_api();

}  // namespace arrowdl::python
