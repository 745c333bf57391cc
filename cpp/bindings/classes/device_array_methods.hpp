// DeviceArray's methods in the raw C API, and its text.
#pragma once

#include <pybind11/cast.h>

#include <string>

#include "arrowdl/device_array.hpp"

namespace arrowdl::python {

PyObject* dlpack(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept;
PyObject* dlpack_device(PyObject* self, PyObject*) noexcept;

/// `__array__`
PyObject* array_method(PyObject* self, PyObject* const* args, Py_ssize_t n,
                       PyObject* names) noexcept;

PyObject* get_cuda_array_interface(PyObject* self, void*) noexcept;
PyObject* get_sycl_usm_array_interface(PyObject* self, void*) noexcept;

PyObject* is_ready(PyObject* self, PyObject*) noexcept;
PyObject* synchronize(PyObject* self, PyObject*) noexcept;
PyObject* wait(PyObject* self, PyObject* stream) noexcept;
PyObject* record_stream(PyObject* self, PyObject* stream) noexcept;
PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept;

/// One line: type, rows, device, nulls, address, and whether work is pending.
std::string describe(const DeviceArray& array);

/// The same as a small table, for notebooks.
std::string describe_html(const DeviceArray& array);

}  // namespace arrowdl::python
