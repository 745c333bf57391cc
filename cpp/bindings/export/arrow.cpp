// Exports a DeviceArray by the Arrow PyCapsule interface.
#include "export/arrow.hpp"

#include <string_view>

#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/stream.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/device_array_object.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// A method of the protocol. Methods for devices take more keywords, which must be None. Source:
/// Arrow "PyCapsule Interface", Device Support.
struct Method {
  const char* name;
  bool is_for_devices;
};
constexpr Method kArrayMethod{"__arrow_c_array__", false};
constexpr Method kDeviceArrayMethod{"__arrow_c_device_array__", true};
constexpr Method kStreamMethod{"__arrow_c_stream__", false};
constexpr Method kDeviceStreamMethod{"__arrow_c_device_stream__", true};

template <const Method& method>
const Parameters<1> request_parameters(method.name, {"requested_schema"}, 1);

/// The `requested_schema` of a call, or nullptr.
template <const Method& method>
std::shared_ptr<const ParsedSchema> read_request(PyObject* const* args, Py_ssize_t n,
                                                 PyObject* names) {
  if constexpr (method.is_for_devices) {
    const auto refuse = [](PyObject* name, PyObject* value) {
      if (value == Py_None) return;
      PyErr_Format(PyExc_NotImplementedError, "%s(): the keyword '%U' is not supported",
                   method.name, name);
      throw py::error_already_set();
    };
    return read_requested_schema(request_parameters<method>.read(args, n, names, refuse)[0]);
  } else {
    return read_requested_schema(request_parameters<method>.read(args, n, names)[0]);
  }
}

/// The array in `self`, cast to the schema that a call requests. A cast may take as long as a copy.
template <const Method& method>
DeviceArray cast_as_requested(PyObject* self, PyObject* const* args, Py_ssize_t n,
                              PyObject* names) {
  const auto requested = read_request<method>(args, n, names);
  const DeviceArray array = find_array(self);
  if (requested == nullptr) return array;
  const py::gil_scoped_release release;
  return cast_to_schema(array, requested,
                        method.is_for_devices ? CastTarget::kDevice : CastTarget::kHost);
}

template <typename Owned>
PyObject* make_pair(const DeviceArray& array, Owned exported) {
  py::tuple pair(2);
  pair[0] = make_capsule(array.export_schema());
  pair[1] = make_capsule(std::move(exported));
  return pair.release().ptr();
}

PyObject* arrow_c_stream(PyObject* self, PyObject* const* args, Py_ssize_t n,
                         PyObject* names) noexcept {
  return guarded([&] {
    DeviceArray array = cast_as_requested<kStreamMethod>(self, args, n, names);
    return make_capsule(export_stream(make_stream({std::move(array)}))).release().ptr();
  });
}

PyObject* arrow_c_device_stream(PyObject* self, PyObject* const* args, Py_ssize_t n,
                                PyObject* names) noexcept {
  return guarded([&] {
    DeviceArray array = cast_as_requested<kDeviceStreamMethod>(self, args, n, names);
    return make_capsule(export_device_stream(make_stream({std::move(array)}))).release().ptr();
  });
}

PyMethodDef stream_method = {
    "__arrow_c_stream__", as_method(arrow_c_stream), kFastCall,
    "__arrow_c_stream__($self, requested_schema=None)\n--\n\nArrow PyCapsule interface: a stream "
    "of this one struct, for memory that the host can read."};

PyMethodDef device_stream_method = {
    "__arrow_c_device_stream__", as_method(arrow_c_device_stream), kFastCall,
    "__arrow_c_device_stream__($self, requested_schema=None, **kwargs)\n--\n\nArrow PyCapsule "
    "interface: a device stream of this one struct."};

PyObject* bind_for_struct(PyMethodDef* method, PyObject* self) noexcept {
  return guarded([&]() -> PyObject* {
    const DeviceArray array = find_array(self);
    if (array.type().layout == Layout::kStruct) return PyCFunction_New(method, self);
    PyErr_Format(PyExc_AttributeError,
                 "%s is of structs alone, this array is of %s: use __arrow_c_array__ or "
                 "__arrow_c_device_array__",
                 method->ml_name, to_string(array.type()).c_str());
    return nullptr;
  });
}

}  // namespace

PyObject* arrow_c_array(PyObject* self, PyObject* const* args, Py_ssize_t n,
                        PyObject* names) noexcept {
  return guarded([&] {
    const DeviceArray array = cast_as_requested<kArrayMethod>(self, args, n, names);
    return make_pair(array, array.export_array());
  });
}

PyObject* arrow_c_device_array(PyObject* self, PyObject* const* args, Py_ssize_t n,
                               PyObject* names) noexcept {
  return guarded([&] {
    const DeviceArray array = cast_as_requested<kDeviceArrayMethod>(self, args, n, names);
    return make_pair(array, array.export_device_array());
  });
}

PyObject* get_arrow_c_stream(PyObject* self, void*) noexcept {
  return bind_for_struct(&stream_method, self);
}

PyObject* get_arrow_c_device_stream(PyObject* self, void*) noexcept {
  return bind_for_struct(&device_stream_method, self);
}

}  // namespace arrowdl::python
