#include "export/arrow.hpp"

#include <string_view>

#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/stream.hpp"
#include "classes/device_array.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The `requested_schema` of a call, or nullptr. Methods of devices take more keywords, as long as
/// they are None. Source: Arrow "PyCapsule Interface", Device Support.
std::shared_ptr<const ParsedSchema> read_request(const char* function, PyObject* const* args,
                                                 Py_ssize_t n, PyObject* names, bool takes_more) {
  PyObject* requested = n > 0 ? args[0] : nullptr;
  read_keywords(function, n, 1, args, names, [&](std::string_view name, PyObject* value) {
    if (name == "requested_schema") {
      if (n > 0) {
        raise_type_error(function, "() got several values for the argument 'requested_schema'");
      }
      requested = value;
      return true;
    }
    if (takes_more && value != Py_None) {
      PyErr_Format(PyExc_NotImplementedError, "%s(): the keyword '%s' is not supported", function,
                   std::string(name).c_str());
      throw py::error_already_set();
    }
    return takes_more;
  });
  return read_requested_schema(requested);
}

/// `array` as it is asked for; converting one takes as long as copying it.
DeviceArray cast_as_requested(const DeviceArray& array,
                              const std::shared_ptr<const ParsedSchema>& requested,
                              CastTarget target) {
  if (requested == nullptr) return array;
  const py::gil_scoped_release release;
  return cast_to_schema(array, requested, target);
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
    const auto requested = read_request("__arrow_c_stream__", args, n, names, false);
    DeviceArray array = cast_as_requested(find_array(self), requested, CastTarget::kHost);
    return make_capsule(export_stream(make_stream({std::move(array)}))).release().ptr();
  });
}

PyObject* arrow_c_device_stream(PyObject* self, PyObject* const* args, Py_ssize_t n,
                                PyObject* names) noexcept {
  return guarded([&] {
    const auto requested = read_request("__arrow_c_device_stream__", args, n, names, true);
    DeviceArray array = cast_as_requested(find_array(self), requested, CastTarget::kDevice);
    return make_capsule(export_device_stream(make_stream({std::move(array)}))).release().ptr();
  });
}

template <typename Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef stream_method = {
    "__arrow_c_stream__", as_method(arrow_c_stream), METH_FASTCALL | METH_KEYWORDS,
    "__arrow_c_stream__($self, requested_schema=None)\n--\n\nArrow PyCapsule interface: a stream "
    "of this one struct, for memory that the host can read."};

PyMethodDef device_stream_method = {
    "__arrow_c_device_stream__", as_method(arrow_c_device_stream), METH_FASTCALL | METH_KEYWORDS,
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
    const auto requested = read_request("__arrow_c_array__", args, n, names, false);
    const DeviceArray array = cast_as_requested(find_array(self), requested, CastTarget::kHost);
    return make_pair(array, array.export_array());
  });
}

PyObject* arrow_c_device_array(PyObject* self, PyObject* const* args, Py_ssize_t n,
                               PyObject* names) noexcept {
  return guarded([&] {
    const auto requested = read_request("__arrow_c_device_array__", args, n, names, true);
    const DeviceArray array = cast_as_requested(find_array(self), requested, CastTarget::kDevice);
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
