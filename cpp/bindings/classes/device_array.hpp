// The Python type DeviceArray: the one class on the raw C API. Every tensor that crosses calls its
// protocol methods, which cost a tenth of what pybind11's do.
#pragma once

#include "support/module.hpp"

namespace arrowdl::python {

/// Adds the type to the module.
void register_device_array(pybind11::module_& m);

}  // namespace arrowdl::python
