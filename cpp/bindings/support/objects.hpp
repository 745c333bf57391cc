// Small helpers over the Python C API.
#pragma once

#include <pybind11/cast.h>

namespace arrowdl::python {

/// Owns the new reference `object` of a C API call. Throws the call's Python error for nullptr.
inline pybind11::object checked(PyObject* object) {
  if (object == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(object);
}

/// `object.name`, or an empty object without such an attribute.
inline pybind11::object find_attribute(PyObject* object, PyObject* name) {
  PyObject* attribute = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
  const int found = PyObject_GetOptionalAttr(object, name, &attribute);
#else
  const int found = _PyObject_LookupAttr(object, name, &attribute);
#endif
  if (found < 0) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(attribute);
}

/// Whether the class of `object` has the attribute. Faster than `find_attribute` if it has not:
/// polars' Series has a `__getattr__` that takes microseconds.
inline bool has_in_class(PyObject* object, PyObject* name) {
  return _PyType_Lookup(Py_TYPE(object), name) != nullptr;
}

/// `object.name()` if its class has such a method, else an empty object.
inline pybind11::object call_if_present(PyObject* object, PyObject* name) {
  if (!has_in_class(object, name)) return {};
  return checked(PyObject_CallMethodNoArgs(object, name));
}

}  // namespace arrowdl::python
