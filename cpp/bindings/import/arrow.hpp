// Arrow arrays out of Python objects, by every door that Arrow has.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl::python {

/// Whether `object` speaks an Arrow PyCapsule protocol or the dataframe interchange protocol.
bool is_arrow(PyObject* object);

/// The stream of an Arrow producer, as its own one before any of its arrays, or of a stream
/// capsule; nullptr for what speaks neither. A producer of arrays makes a stream of one.
OwnedStream find_stream(PyObject* object);

/// The same, and of a list a stream of one array for each item. Raises TypeError for anything else.
OwnedStream take_stream_of(PyObject* object);

/// The array of a DeviceArray, a producer or raw capsules; of a frame that speaks the interchange
/// protocol alone, a struct of its columns. Raises TypeError for anything else, BufferError where
/// `copy` is kNever and several chunks or a frame's layout need one.
DeviceArray take_array_of(PyObject* object, Copy copy = Copy::kIfNeeded);

/// The rows of `stream` as one array; it may run any code, for any time: not under the GIL. Raises
/// BufferError where `copy` is kNever and there are several chunks.
DeviceArray gather_stream(OwnedStream stream, Copy copy);

}  // namespace arrowdl::python
