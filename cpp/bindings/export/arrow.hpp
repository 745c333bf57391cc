// DeviceArray's methods of the Arrow PyCapsule interface, in the raw C API.
#pragma once

#include <pybind11/cast.h>

namespace arrowdl::python {

PyObject* arrow_c_array(PyObject* self, PyObject* const* args, Py_ssize_t n,
                        PyObject* names) noexcept;
PyObject* arrow_c_device_array(PyObject* self, PyObject* const* args, Py_ssize_t n,
                               PyObject* names) noexcept;

// The stream methods, which only structs have: consumers treat an object that has them as a table.
// They are properties, so that other arrays raise AttributeError.
PyObject* get_arrow_c_stream(PyObject* self, void*) noexcept;
PyObject* get_arrow_c_device_stream(PyObject* self, void*) noexcept;

}  // namespace arrowdl::python
