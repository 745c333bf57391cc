// DeviceArray's methods of the protocols that are neither Arrow's nor DLPack's, in the raw C API.
#pragma once

#include <pybind11/cast.h>

namespace arrowdl::python {

/// `__array__`
PyObject* array_method(PyObject* self, PyObject* const* args, Py_ssize_t n,
                       PyObject* names) noexcept;

PyObject* get_cuda_array_interface(PyObject* self, void*) noexcept;
PyObject* get_sycl_usm_array_interface(PyObject* self, void*) noexcept;

}  // namespace arrowdl::python
