// Arrow arrays out of Python objects, by every door that Arrow has.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/convert.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl::python {

/// Whether `object` speaks an Arrow PyCapsule protocol or the dataframe interchange protocol.
bool is_arrow(PyObject* object);

/// The array of a DeviceArray, a producer or raw capsules; of a frame that speaks the interchange
/// protocol alone, a struct of its columns. Raises TypeError for anything else, BufferError where
/// `copy` is kNever and several chunks or a frame's layout need one.
DeviceArray take_array_of(PyObject* object, Copy copy = Copy::kIfNeeded);

/// The same as the chunks that it comes in: of a stream its own, of a list one for each item.
Chunks take_chunks_of(PyObject* object);

/// `chunks` as one array. Raises BufferError where `copy` is kNever and there are several.
DeviceArray gather(Chunks chunks, Copy copy);

}  // namespace arrowdl::python
