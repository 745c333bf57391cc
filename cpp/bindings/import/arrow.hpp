// Imports Arrow arrays and streams from Python objects, by every Arrow protocol.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl::python {

/// Whether `object` speaks an Arrow PyCapsule protocol or the dataframe interchange protocol.
bool is_arrow(PyObject* object);

/// The stream of a stream capsule or an Arrow producer. A producer of arrays alone gives a stream
/// of one array. nullptr for other objects.
OwnedStream find_stream(PyObject* object);

/// The same; a list gives a stream of one array for each item. Raises TypeError for other objects.
OwnedStream take_stream_of(PyObject* object);

/// The array of a DeviceArray, a producer or raw capsules; a struct of the columns for a frame with
/// the interchange protocol alone. Raises TypeError for other objects, BufferError if several
/// chunks or a frame's layout need a copy and `copy` is kNever.
DeviceArray take_array_of(PyObject* object, Copy copy = Copy::kIfNeeded);

/// The rows of `stream` as one array. Releases the GIL: a stream may run any code, for any time.
/// Raises BufferError for several chunks if `copy` is kNever.
DeviceArray gather_stream(OwnedStream stream, Copy copy);

}  // namespace arrowdl::python
