// DeviceArray's methods of events, GPU streams, devices and other libraries' protocols.
#include "classes/device_array_methods.hpp"

#include <optional>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "classes/classes.hpp"
#include "export/allocator.hpp"
#include "export/array_interface.hpp"
#include "support/arguments.hpp"
#include "support/device_array_object.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// Calls `use(array, device, stream, owner)`. Raises TypeError for None.
template <typename Use>
PyObject* use_stream(PyObject* self, PyObject* stream, const Use& use) noexcept {
  return guarded([&] {
    const DeviceArray array = get_array(self);
    if (const auto read = read_stream_of_device(array.device(), stream)) {
      use(array, read->device, read->handle, find_stream_owner(array.device(), stream));
      return py::none().release().ptr();
    }
    raise_type_error("a stream or queue is needed, got None");
  });
}

const Parameters<5> to_parameters("to",
                                  {"device", "stream", "non_blocking", "pin_memory", "allocator"},
                                  1);

/// `value`, or None where it was not given.
py::handle or_none(PyObject* value) { return value == nullptr ? Py_None : value; }

const Parameters<2> array_parameters("__array__", {"dtype", "copy"}, 2);

}  // namespace

PyObject* is_ready(PyObject* self, PyObject*) noexcept {
  return guarded([&] { return PyBool_FromLong(get_array(self).is_ready() ? 1 : 0); });
}

PyObject* synchronize(PyObject* self, PyObject*) noexcept {
  return guarded([&] {
    const DeviceArray array = get_array(self);
    array.synchronize();
    return py::none().release().ptr();
  });
}

PyObject* wait(PyObject* self, PyObject* stream) noexcept {
  return use_stream(
      self, stream,
      [](const DeviceArray& array, const Device& device, StreamHandle handle,
         std::shared_ptr<const void> owner) { array.wait(device, handle, std::move(owner)); });
}

PyObject* record_stream(PyObject* self, PyObject* stream) noexcept {
  return use_stream(self, stream,
                    [](const DeviceArray& array, const Device& device, StreamHandle handle,
                       std::shared_ptr<const void> owner) {
                      array.record_stream(device, handle, std::move(owner));
                    });
}

PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    const auto [target, stream, non_blocking, pin_memory, allocator] =
        to_parameters.read(args, n, names);
    if (target == nullptr) raise_type_error("to() needs a device");
    CopyOptions options;
    if (non_blocking != nullptr) options.non_blocking = read_bool("non_blocking", non_blocking);
    if (pin_memory != nullptr) options.pin = read_bool("pin_memory", pin_memory);
    options.allocator = read_allocator(allocator);
    const DeviceArray array = get_array(self);
    const Device device = read_device(target);
    const Device& at = device.type == kDLCPU ? array.device() : device;
    options.stream = read_stream(at, stream);
    if (options.stream) options.stream_owner = find_stream_owner(at, stream);
    DeviceArray copied;
    {
      const py::gil_scoped_release release;  // drivers wait in the middle of copies
      copied = copy_array(array, device, options);
    }
    return wrap(std::move(copied)).release().ptr();
  });
}

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
