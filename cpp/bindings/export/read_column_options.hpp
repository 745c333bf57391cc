// Reads the options of columns from what Python gives.
#pragma once

#include <pybind11/cast.h>

#include "export/column_options.hpp"

namespace arrowdl::python {

/// Arguments of to_torch and its like; nullptr for those that were not given.
struct ColumnArguments {
  PyObject* nulls = nullptr;
  PyObject* ragged = nullptr;
  PyObject* dtype = nullptr;
  PyObject* stack = nullptr;
  PyObject* pad_value = nullptr;
  PyObject* max_length = nullptr;
  PyObject* pad_to_multiple = nullptr;

  bool has_any() const noexcept {
    return nulls != nullptr || ragged != nullptr || dtype != nullptr || stack != nullptr ||
           pad_value != nullptr || max_length != nullptr || pad_to_multiple != nullptr;
  }
};

/// A dict of the items of a mapping, which no other code changes; another value as it is.
pybind11::object copy_mapping(PyObject* value);

/// Raises ValueError or TypeError, naming the argument, and the column if it is a mapping.
ColumnOptions read_column_options(const ColumnArguments& arguments);

}  // namespace arrowdl::python
