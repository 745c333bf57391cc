// Exports DeviceArrays by `__cuda_array_interface__` and `__sycl_usm_array_interface__`.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/device_array.hpp"

namespace arrowdl::python {

// Both return a dict, whose user keeps `array` alive. They raise AttributeError if the protocol
// cannot describe the array.

/// Version 3: its `stream` waits for the array's event. The host does not wait.
pybind11::object make_cuda_array_interface(const DeviceArray& array);
/// Version 1, which has no stream: the host waits for the array's event.
pybind11::object make_sycl_usm_array_interface(const DeviceArray& array);

}  // namespace arrowdl::python
