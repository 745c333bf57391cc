// Tensors out of Python objects, by every entry point of DLPack and what stands in for it.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/copy_policy.hpp"
#include "import/taken_tensor.hpp"

namespace arrowdl::python {

/// Whether `object` can be taken by `take_tensor_of`.
bool is_tensor(PyObject* object);

/// The tensor of a producer: exchange API, `__dlpack__` of any DLPack version, a raw capsule, or
/// where there is nothing better an array interface of CUDA or SYCL, or the buffer protocol. Its
/// event is recorded on `stream`, where that is not None, on the stream that the producer computes
/// on, or on one of ours that the producer ordered its work before; the host waits for none. Raises
/// what the producer raises, BufferError for what its own exporter would refuse.
TakenTensor take_tensor_of(PyObject* object, Copy copy, PyObject* stream = nullptr);
/// The same where the exchange API of its class has been looked for already.
TakenTensor take_tensor_of(PyObject* object, const DLPackExchangeAPI* api, Copy copy,
                           PyObject* stream);

}  // namespace arrowdl::python
