// Imports tensors by `__cuda_array_interface__` and `__sycl_usm_array_interface__`: dictionaries
// that describe device memory, for libraries without DLPack.
#pragma once

#include <pybind11/cast.h>

#include "import/taken_tensor.hpp"

namespace arrowdl::python {

/// Whether `object` has one of the two.
bool has_array_interface(PyObject* object);

/// The tensor that one of them describes; it keeps `object` alive. Its event is recorded on
/// `stream` if that is not None, else on the stream or queue that the dictionary names. Raises
/// ValueError for a dictionary that breaks its protocol, BufferError for tensors that Arrow cannot
/// carry or whose device is not known.
TakenTensor take_array_interface(PyObject* object, PyObject* stream);

}  // namespace arrowdl::python
