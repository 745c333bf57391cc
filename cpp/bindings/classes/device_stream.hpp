// The Python class DeviceStream.
#pragma once

#include <pybind11/pybind11.h>

namespace arrowdl::python {

/// Adds the class, and `stream`, which makes one of anything, to the module.
void register_device_stream(pybind11::module_& m);

}  // namespace arrowdl::python
