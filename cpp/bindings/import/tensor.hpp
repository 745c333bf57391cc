// Tensors out of and into Python objects, by every door that DLPack has.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/backends.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// The C exchange API of `type` (DLPack 1.3), or nullptr when it has none of our major version.
const DLPackExchangeAPI* find_exchange_api(PyTypeObject* type);

/// Whether `object` can be taken by `take_tensor_of`.
bool is_tensor(PyObject* object);

/// A producer's tensor, and the event after which its memory is there.
struct TakenTensor {
  OwnedTensor tensor;
  OwnedEvent event;
};

/// The tensor of a producer: exchange API, `__dlpack__` of any vintage, a raw capsule, or where
/// there is nothing better an array interface of CUDA or SYCL, or the buffer protocol. Its event is
/// recorded on `stream`, where that is not None, on the stream that the producer computes on, or on
/// one of ours that the producer ordered its work before; the host waits for none. Raises what the
/// producer raises, BufferError for what its own exporter would refuse.
TakenTensor take_tensor_of(PyObject* object, Copy copy, PyObject* stream = nullptr);
/// The same where the exchange API of its class has been looked for already.
TakenTensor take_tensor_of(PyObject* object, const DLPackExchangeAPI* api, Copy copy,
                           PyObject* stream);

/// `tensor` as an object of the framework whose exchange API it is.
pybind11::object to_object(const DLPackExchangeAPI& api, OwnedTensor tensor);

/// `tensor`, which the host can read, in memory of `device` that the framework allocates itself:
/// the stream of its work there copies. Raises BufferError where the framework has no such memory
/// or arrowdl no runtime to copy with.
OwnedTensor copy_by(const DLPackExchangeAPI& api, OwnedTensor tensor, const Device& device);

/// The stream that a framework's work on `device` is queued on.
StreamHandle current_stream(const DLPackExchangeAPI& api, const Device& device);

/// Our own exchange API, in a capsule, for `DeviceArray.__dlpack_c_exchange_api__`.
pybind11::object make_exchange_api();

}  // namespace arrowdl::python
