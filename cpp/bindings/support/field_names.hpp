// The names of fields as Python strings.
#pragma once

#include <pybind11/cast.h>

namespace arrowdl::python {

/// `name`, which is UTF-8. The same names come with each batch: short ones of ASCII are kept, so
/// that they are decoded and hashed once. Raises UnicodeDecodeError.
pybind11::object intern_field_name(const char* name);

}  // namespace arrowdl::python
