// Tensors out of Python's buffer protocol (PEP 3118): bytes, memoryview, pyarrow.Buffer, ...
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// A view of what `object` exports, which it keeps from changing its size. Raises BufferError for
/// an element format that has no dtype, or what the exporter raises.
OwnedTensor take_buffer(PyObject* object);

}  // namespace arrowdl::python
