// Imports tensors from Python objects, by every protocol that exports them.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/copy_policy.hpp"
#include "import/foreign_tensors.hpp"

namespace arrowdl::python {

/// Whether `object` can be taken by `take_tensor_of`.
bool is_tensor(PyObject* object);

/// Takes the tensor of `object` by the first that it has of: the exchange API, a raw capsule,
/// `__dlpack__` of any DLPack version, an array interface of CUDA or SYCL, the buffer protocol. The
/// event is recorded on `stream` unless that is None, else on the stream of the producer's work, or
/// on a stream of ours that the producer ordered its work before. The host does not wait. Raises
/// the producer's errors, and BufferError for a tensor that its own `__dlpack__` would refuse, for
/// one whose dtype has no numbers (a library may end the process for it), and for other elements
/// than `elements`.
TakenTensor take_tensor_of(PyObject* object, Copy copy, PyObject* stream = nullptr);
/// The same for an object whose class has the exchange API `api`, or none if that is nullptr.
TakenTensor take_tensor_of(PyObject* object, const DLPackExchangeAPI* api, Copy copy,
                           PyObject* stream, Elements elements = Elements::kDlpacks);

}  // namespace arrowdl::python
