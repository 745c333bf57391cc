// The Python class ColumnOptions: options of a Loader, read once for all of its batches.
#pragma once

#include "export/column_options.hpp"
#include "support/module.hpp"

namespace arrowdl::python {

/// The options of a ColumnOptions, which live as long as that. Raises TypeError for other objects.
const ColumnOptions& find_column_options(PyObject* object);

/// Adds the class ColumnOptions to the module.
void register_column_options(pybind11::module_& m);

}  // namespace arrowdl::python
