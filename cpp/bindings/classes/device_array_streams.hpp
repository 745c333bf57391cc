// DeviceArray's methods of events, GPU streams and devices, in the raw C API.
#pragma once

#include <pybind11/cast.h>

namespace arrowdl::python {

PyObject* is_ready(PyObject* self, PyObject*) noexcept;
PyObject* synchronize(PyObject* self, PyObject*) noexcept;
PyObject* wait(PyObject* self, PyObject* stream) noexcept;
PyObject* record_stream(PyObject* self, PyObject* stream) noexcept;
PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept;

}  // namespace arrowdl::python
