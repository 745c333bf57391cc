// Waits for, records and copies a DeviceArray.
#include "classes/device_array_streams.hpp"

#include <optional>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "classes/device.hpp"
#include "export/allocator.hpp"
#include "support/arguments.hpp"
#include "support/device_array_object.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"

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

}  // namespace arrowdl::python
