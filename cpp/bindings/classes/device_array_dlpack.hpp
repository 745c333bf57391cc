// DeviceArray's methods of the DLPack protocol, in the raw C API.
#pragma once

#include <pybind11/cast.h>

namespace arrowdl::python {

PyObject* dlpack(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept;
PyObject* dlpack_device(PyObject* self, PyObject*) noexcept;

}  // namespace arrowdl::python
