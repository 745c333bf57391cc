// Tensors out of `__cuda_array_interface__` and `__sycl_usm_array_interface__`: dictionaries that
// describe device memory, of libraries without DLPack.
#pragma once

#include <pybind11/pybind11.h>

#include "import/taken_tensor.hpp"

namespace arrowdl::python {

/// Whether `object` has one of the two.
bool has_array_interface(PyObject* object);

/// The memory that one of them describes, which keeps `object` alive. Its event is recorded on
/// `stream` if that is not None, else on the stream or queue that the dictionary names. Raises
/// ValueError for a dictionary that breaks its protocol, BufferError for what Arrow cannot carry
/// and where nobody can tell the device.
TakenTensor take_array_interface(PyObject* object, PyObject* stream);

}  // namespace arrowdl::python
