#include "arrays.hpp"

#include "arrowdl/error.hpp"
#include "capsule.hpp"
#include "errors.hpp"
#include "objects.hpp"
#include "py_device_array.hpp"
#include "pyarrow.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The protocols in the order of preference: what says where the data lies comes first, and an
/// array before a stream, which has to be read to its end.
struct Protocol {
  const char* name;
  bool is_stream;
  PyObject* interned;
};

Protocol* protocols() {
  static Protocol table[] = {
      {"__arrow_c_device_array__", false, interned("__arrow_c_device_array__")},
      {"__arrow_c_array__", false, interned("__arrow_c_array__")},
      {"__arrow_c_device_stream__", true, interned("__arrow_c_device_stream__")},
      {"__arrow_c_stream__", true, interned("__arrow_c_stream__")},
      {nullptr, false, nullptr},
  };
  return table;
}

/// The method of the first protocol that `object` speaks, and `*row` to that; or an empty object.
/// Of its class first, then of what an instance has of its own or by a __getattr__.
py::object find_method(PyObject* object, const Protocol** row) {
  for (const bool of_class : {true, false}) {
    for (*row = protocols(); (*row)->name != nullptr; ++*row) {
      if (of_class && !has_in_class(object, (*row)->interned)) continue;
      if (py::object method = find_attribute(object, (*row)->interned)) return method;
    }
  }
  return {};
}

DeviceArray take_pair(PyObject* pair, const char* from) {
  if (PyTuple_Check(pair) == 0 || PyTuple_GET_SIZE(pair) != 2) {
    raise_type_error(from, " gave ", py::repr(pair).cast<std::string>(),
                     ", expected a tuple of two capsules (schema, array)");
  }
  return take_array(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
}

/// A stream's producer may run any code, for any time: not under the GIL.
DeviceArray gather_stream(OwnedStream stream) {
  const py::gil_scoped_release release;
  const OwnedStream source = std::move(stream);
  return gather(read_stream(*source));
}

/// The stream that `object` gives by a protocol of streams, or nullptr.
OwnedStream find_own_stream(PyObject* object) {
  for (const Protocol* row = protocols(); row->name != nullptr; ++row) {
    if (!row->is_stream) continue;
    if (const py::object method = find_attribute(object, row->interned)) {
      return open_stream(checked(PyObject_CallNoArgs(method.ptr())).ptr());
    }
  }
  return nullptr;
}

[[noreturn]] void raise_not_arrow(PyObject* object) {
  const bool is_type = PyType_Check(object) != 0;
  raise_type_error(
      "from_arrow() cannot read ", is_type ? "the class " : "an object of type ",
      is_type ? reinterpret_cast<PyTypeObject*>(object)->tp_name : Py_TYPE(object)->tp_name,
      ": it has none of __arrow_c_device_array__, __arrow_c_array__, "
      "__arrow_c_device_stream__ and __arrow_c_stream__; for tensors use "
      "to_arrow_device()");
}

}  // namespace

bool is_arrow(PyObject* object) {
  if (find_array(object)) return true;
  const Protocol* row = nullptr;
  return PyType_Check(object) == 0 && find_method(object, &row);
}

OwnedStream find_stream(PyObject* object) {
  if (is_stream_capsule(object)) return open_stream(object);
  if (PyType_Check(object) != 0) raise_not_arrow(object);
  if (OwnedStream stream = find_own_stream(object)) return stream;
  if (!is_arrow(object) && PyTuple_Check(object) == 0) return nullptr;
  const DeviceArray array = take_array_of(object);
  auto schema = share_schema(array.export_schema());
  return make_stream(std::move(schema), {array});
}

DeviceArray take_array_of(PyObject* object) {
  if (DeviceArray array = find_array(object)) return array;
  if (is_stream_capsule(object)) return gather_stream(open_stream(object));
  if (PyTuple_Check(object) != 0) return take_pair(object, "the argument");
  if (PyType_Check(object) != 0) raise_not_arrow(object);
  if (DeviceArray array = take_pyarrow_array(object)) return array;
  const Protocol* row = nullptr;
  const py::object method = find_method(object, &row);
  if (!method) raise_not_arrow(object);
  const py::object result = checked(PyObject_CallNoArgs(method.ptr()));
  return row->is_stream ? gather_stream(open_stream(result.ptr()))
                        : take_pair(result.ptr(), row->name);
}

}  // namespace arrowdl::python
