// The Python class DeviceStream.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/stream.hpp"
#include "support/module.hpp"

namespace arrowdl::python {

/// A new DeviceStream object that owns `stream`.
pybind11::object wrap(OwnedStream stream);

/// Adds the class, from_arrow_stream, chain, interleave, mix and permute to the module.
void register_device_stream(pybind11::module_& m);

}  // namespace arrowdl::python
