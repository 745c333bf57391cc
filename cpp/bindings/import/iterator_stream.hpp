// A stream of the arrays that a Python iterator yields.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/stream.hpp"

namespace arrowdl::python {

/// The arrays of the iterable `object`, of the type and device type of its first one, which is read
/// at once. Raises TypeError for no iterable, ValueError for an empty one, and from the stream what
/// the iterator raises.
OwnedStream iterate(const pybind11::object& object);

}  // namespace arrowdl::python
