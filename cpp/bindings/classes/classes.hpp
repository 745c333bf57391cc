// The Python classes, which module.cpp registers, and their values.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/device.hpp"
#include "arrowdl/stream.hpp"
#include "export/column_options.hpp"
#include "support/module.hpp"

namespace arrowdl::python {

/// The device that `object` names: a Device, a name ("cpu", "cuda:1"), a pair (type, id), or a
/// framework's device object with `type` and `index`. Without an id it is the current device: of
/// `framework` ("jax"; empty: any that is loaded), else of the runtime, else 0. Raises TypeError or
/// ValueError otherwise.
Device read_device(PyObject* object, const char* framework = "");

void register_device(pybind11::module_& m);

/// Adds the type to the module.
void register_device_array(pybind11::module_& m);

/// A new DeviceStream object that owns `stream`.
pybind11::object wrap(OwnedStream stream);

/// Adds the class, from_arrow_stream, chain, interleave, mix and permute to the module.
void register_device_stream(pybind11::module_& m);

void register_async_receiver(pybind11::module_& m);

/// The options of a ColumnOptions, which live as long as that. Raises TypeError for other objects.
const ColumnOptions& find_column_options(PyObject* object);

/// Adds the class ColumnOptions to the module.
void register_column_options(pybind11::module_& m);

}  // namespace arrowdl::python
