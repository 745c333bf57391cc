// Imports tensors by Python's buffer protocol (PEP 3118): bytes, memoryview, pyarrow.Buffer, ...
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// A read-only view of the memory of `object`, which cannot be resized while the view exists.
/// Raises BufferError for an element format without a dtype, or the exporter's error.
OwnedTensor take_buffer(PyObject* object);

}  // namespace arrowdl::python
