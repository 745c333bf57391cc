// A stream of the arrays that a Python iterator yields.
#pragma once

#include <pybind11/cast.h>

#include <cstdint>
#include <memory>

#include "arrowdl/stream.hpp"

namespace arrowdl::python {

/// The arrays of the iterable `object`, all of the type and device type of the first, which this
/// reads at once. Raises TypeError if it is not an iterable, ValueError if it is empty; the stream
/// raises the iterator's errors.
OwnedStream iterate(const pybind11::object& object);

/// The same for a Python iterator whose arrays have a type that is known: reads none before the
/// first `next`, and there may be none.
OwnedStream iterate(const pybind11::object& iterator, std::shared_ptr<const ParsedSchema> schema,
                    int32_t device_type);

}  // namespace arrowdl::python
