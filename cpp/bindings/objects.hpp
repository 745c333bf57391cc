// Small helpers over the Python C API.
#pragma once

#include <pybind11/pybind11.h>

namespace arrowdl::python {

/// A new reference from a C API call, or the Python error that it set, thrown.
inline pybind11::object checked(PyObject* object) {
  if (object == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(object);
}

/// `object.name`, or an empty object when there is no such attribute.
inline pybind11::object find_attribute(PyObject* object, PyObject* name) {
  auto attribute = pybind11::reinterpret_steal<pybind11::object>(PyObject_GetAttr(object, name));
  if (!attribute) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw pybind11::error_already_set();
    PyErr_Clear();
  }
  return attribute;
}

/// An interned string that lives as long as the process: for names looked up on every call.
inline PyObject* interned(const char* name) { return PyUnicode_InternFromString(name); }

}  // namespace arrowdl::python
