// The Python type DeviceArray. The one class on the raw C API: its protocol methods are called
// for every tensor that crosses, and cost a tenth of what a wrapped method costs.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/device_array.hpp"

namespace arrowdl::python {

/// A new DeviceArray object around `array`.
pybind11::object wrap(DeviceArray array);

/// The array in a DeviceArray object, or an empty one for any other object. Raises ValueError
/// when it has been released.
DeviceArray find_array(PyObject* object);

/// Adds the type to the module.
void register_device_array(pybind11::module_& m);

}  // namespace arrowdl::python
