// The Python class Device.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/device.hpp"
#include "support/module.hpp"

namespace arrowdl::python {

/// The device that `object` names: a Device, a name ("cpu", "cuda:1"), a pair (type, id), or a
/// framework's device object with `type` and `index`. Without an id it is the current device: of
/// `framework` ("jax"; empty: any that is loaded), else of the runtime, else 0. Raises TypeError or
/// ValueError otherwise.
Device read_device(PyObject* object, const char* framework = "");

void register_device(pybind11::module_& m);

}  // namespace arrowdl::python
