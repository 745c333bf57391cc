// Arrow arrays out of Python objects, by every door that Arrow has.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/device_array.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl::python {

/// Whether `object` speaks an Arrow PyCapsule protocol.
bool is_arrow(PyObject* object);

/// The stream of an Arrow producer, as its own one before any of its arrays, or of a stream
/// capsule; nullptr for what speaks neither. A producer of arrays makes a stream of one.
OwnedStream find_stream(PyObject* object);

/// The array of a DeviceArray, a producer or raw capsules. Raises TypeError for anything else.
DeviceArray take_array_of(PyObject* object);

}  // namespace arrowdl::python
