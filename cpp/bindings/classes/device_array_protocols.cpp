// Exports a DeviceArray as a NumPy array and an array interface.
#include "classes/device_array_protocols.hpp"

#include "export/array_interface.hpp"
#include "support/arguments.hpp"
#include "support/device_array_object.hpp"
#include "support/errors.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// `value`, or None where it was not given.
py::handle or_none(PyObject* value) { return value == nullptr ? Py_None : value; }

const Parameters<2> array_parameters("__array__", {"dtype", "copy"}, 2);

}  // namespace

PyObject* array_method(PyObject* self, PyObject* const* args, Py_ssize_t n,
                       PyObject* names) noexcept {
  return guarded([&] {
    const auto [dtype, copy] = array_parameters.read(args, n, names);
    return find_hook(Hook::kToArray)(py::handle(self), or_none(dtype), or_none(copy))
        .release()
        .ptr();
  });
}

PyObject* get_cuda_array_interface(PyObject* self, void*) noexcept {
  return guarded([&] { return make_cuda_array_interface(get_array(self)).release().ptr(); });
}

PyObject* get_sycl_usm_array_interface(PyObject* self, void*) noexcept {
  return guarded([&] { return make_sycl_usm_array_interface(get_array(self)).release().ptr(); });
}

}  // namespace arrowdl::python
