// What a DeviceArray gives by the Arrow PyCapsule interface: its methods, in the raw C API.
#pragma once

#include <pybind11/pybind11.h>

namespace arrowdl::python {

PyObject* arrow_c_array(PyObject* self, PyObject* const* args, Py_ssize_t n,
                        PyObject* names) noexcept;
PyObject* arrow_c_device_array(PyObject* self, PyObject* const* args, Py_ssize_t n,
                               PyObject* names) noexcept;

// The methods of streams, which structs alone have: consumers that find one take the array for a
// table. Properties, so that asking other arrays for them raises AttributeError.
PyObject* get_arrow_c_stream(PyObject* self, void*) noexcept;
PyObject* get_arrow_c_device_stream(PyObject* self, void*) noexcept;

}  // namespace arrowdl::python
