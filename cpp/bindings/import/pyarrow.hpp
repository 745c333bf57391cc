// pyarrow's arrays by their quickest doors.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/device_array.hpp"

namespace arrowdl::python {

/// A pyarrow array or record batch: the C struct alone, of a type that is known already. Empty for
/// any other object: the protocols are open to those.
DeviceArray take_pyarrow_array(PyObject* object);

/// The tensor of a pyarrow array of numbers, by its own DLPack export. Empty for any other object
/// and wherever pyarrow refuses, for nulls say.
OwnedTensor take_pyarrow_numbers(PyObject* object);

}  // namespace arrowdl::python
