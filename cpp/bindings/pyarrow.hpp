// pyarrow's own DLPack export, quicker than the way over Arrow's structs.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// The tensor of a pyarrow array of numbers, or of fixed-size lists of numbers: (n,) or (n, size).
/// Empty for any other object and wherever pyarrow refuses, for nulls say: the way over Arrow's
/// structs knows more, or says why not.
OwnedTensor take_pyarrow_tensor(PyObject* object);

}  // namespace arrowdl::python
