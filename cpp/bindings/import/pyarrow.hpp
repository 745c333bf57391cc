// Imports pyarrow's arrays without the PyCapsule protocol, which is slower.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/device_array.hpp"

namespace arrowdl::python {

/// Makes the arguments of calls of pyarrow, when the module is initialised.
void prepare_pyarrow();

/// A pyarrow array or record batch of a type that was imported before: only the array's C struct is
/// exported. Empty for other objects: use their protocols.
DeviceArray take_pyarrow_array(PyObject* object);

/// The tensor of a pyarrow array of numbers, by its own DLPack export. Empty for other objects, and
/// if pyarrow refuses, for nulls for example.
OwnedTensor take_pyarrow_numbers(PyObject* object);

}  // namespace arrowdl::python
