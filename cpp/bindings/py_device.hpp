// The Python class Device.
#pragma once

#include <pybind11/pybind11.h>

namespace arrowdl::python {

void register_device(pybind11::module_& m);

}  // namespace arrowdl::python
