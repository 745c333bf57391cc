// The DLPack C exchange API of a framework's tensor class.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/backend.hpp"
#include "arrowdl/device.hpp"

namespace arrowdl::python {

/// The C exchange API of `type` (DLPack 1.3), or nullptr if it has none of arrowdl's major version.
const DLPackExchangeAPI* find_exchange_api(PyTypeObject* type);

/// The stream that a framework's work on `device` is queued on.
StreamHandle current_stream(const DLPackExchangeAPI& api, const Device& device);

}  // namespace arrowdl::python
