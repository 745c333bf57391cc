// The Python class AsyncReceiver, on which arrowdl.AsyncDeviceStream is built.
#pragma once

#include "support/module.hpp"

namespace arrowdl::python {

void register_async_receiver(pybind11::module_& m);

}  // namespace arrowdl::python
