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
OwnedStream find_stream(PyObject* object, const char* function = "from_arrow_stream");

/// The same; a list gives a stream of one array for each item. Raises TypeError for other objects,
/// in the name of `function`.
OwnedStream take_stream_of(PyObject* object, const char* function);

/// The array of a DeviceArray, a producer or raw capsules; a struct of the columns for a frame with
/// the interchange protocol alone. Raises TypeError for other objects, BufferError if several
/// chunks or a frame's layout need a copy and `copy` is kNever. Errors name `function`, that of the
/// caller.
DeviceArray take_array_of(PyObject* object, Copy copy = Copy::kIfNeeded,
                          const char* function = "from_arrow");

/// Raises TypeError: `function` cannot read `object`, and what to pass instead.
[[noreturn]] void raise_unread(const char* function, PyObject* object);

/// The rows of `stream` as one array. Releases the GIL: a stream may run any code, for any time.
/// Raises BufferError for several chunks if `copy` is kNever.
DeviceArray gather_stream(OwnedStream stream, Copy copy);

}  // namespace arrowdl::python
