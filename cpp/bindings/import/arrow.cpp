// Imports Arrow arrays and streams from Python objects.
#include "import/arrow.hpp"

#include <string_view>

#include "arrowdl/error.hpp"
#include "import/pyarrow.hpp"
#include "support/capsule.hpp"
#include "support/device_array_object.hpp"
#include "support/errors.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The protocols in the order of preference: those that name the device first, and arrays before
/// streams, which have to be read to their end.
struct Protocol {
  const char* name;
  bool is_stream;
  const InternedName& interned;
};

constexpr Protocol kProtocols[] = {
    {"__arrow_c_device_array__", false, names::arrow_c_device_array},
    {"__arrow_c_array__", false, names::arrow_c_array},
    {"__arrow_c_device_stream__", true, names::arrow_c_device_stream},
    {"__arrow_c_stream__", true, names::arrow_c_stream},
};

/// The method of the first protocol that `object` has, stored in `*row`; else an empty object.
/// Searches its class first, then its own attributes and `__getattr__`.
py::object find_method(PyObject* object, const Protocol** row) {
  for (const bool of_class : {true, false}) {
    for (const Protocol& protocol : kProtocols) {
      if (of_class && !has_in_class(object, protocol.interned)) continue;
      *row = &protocol;
      if (py::object method = find_attribute(object, protocol.interned)) return method;
    }
  }
  return {};
}

/// Raises TypeError for a frame or a series of polars with Python objects, which it exports as the
/// bytes of their addresses.
void refuse_objects(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  if (name == "DataFrame" || name == "Series") find_hook(Hook::kRefuseObjects)(py::handle(object));
}

/// `method()` of a producer. A note on its error says whose it is, and what to pass instead.
py::object call_producer(const py::object& method, const char* name, PyObject* object) {
  refuse_objects(object);
  try {
    return checked(PyObject_CallNoArgs(method.ptr()));
  } catch (py::error_already_set& error) {
    if (error.matches(PyExc_Exception)) {
      find_hook(Hook::kAnnotate)(error.value(), name, py::handle(object));
    }
    throw;
  }
}

/// The array of `pair`, the result of `method` or, with nullptr, an argument.
DeviceArray take_pair(PyObject* pair, const char* method) {
  if (PyTuple_Check(pair) == 0 || PyTuple_GET_SIZE(pair) != 2) {
    raise_type_error(method == nullptr ? "the argument is " : concat(method, "() returned "),
                     py::repr(pair).cast<std::string>(),
                     ", expected a tuple of two capsules (schema, array)");
  }
  return take_array(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
}

/// The stream of `object` by a stream protocol, or nullptr.
OwnedStream find_own_stream(PyObject* object) {
  for (const Protocol& row : kProtocols) {
    if (!row.is_stream) continue;
    if (const py::object method = find_attribute(object, row.interned)) {
      return open_stream(call_producer(method, row.name, object).ptr());
    }
  }
  return nullptr;
}

DeviceArray take_dataframe(PyObject* object, Copy copy, const char* function) {
  if (!find_attribute(object, names::dataframe)) raise_unread(function, object);
  const py::handle take = find_hook(Hook::kFromDataFrame);
  return find_array(take(py::handle(object), py::arg("allow_copy") = copy != Copy::kNever).ptr());
}

}  // namespace

void raise_unread(const char* function, PyObject* object) {
  raise_type_error(
      find_hook(Hook::kExplainUnread)(function, py::handle(object)).cast<std::string>());
}

bool is_arrow(PyObject* object) {
  if (find_array(object)) return true;
  if (PyType_Check(object) != 0) return false;
  const Protocol* row = nullptr;
  return find_method(object, &row) || has_in_class(object, names::dataframe);
}

OwnedStream find_stream(PyObject* object, const char* function) {
  if (DeviceArray array = find_array(object)) return make_stream({std::move(array)});
  if (is_stream_capsule(object)) return open_stream(object);
  if (PyType_Check(object) != 0) raise_unread(function, object);
  if (OwnedStream stream = find_own_stream(object)) return stream;
  if (!is_arrow(object) && PyTuple_Check(object) == 0) return nullptr;
  return make_stream({take_array_of(object)});
}

OwnedStream take_stream_of(PyObject* object, const char* function) {
  if (OwnedStream stream = find_stream(object, function)) return stream;
  if (PyList_Check(object) == 0) raise_unread(function, object);
  std::vector<DeviceArray> arrays;
  for (const py::handle item : py::reinterpret_borrow<py::list>(object)) {
    arrays.push_back(take_array_of(item.ptr(), Copy::kIfNeeded, function));
  }
  if (arrays.empty()) {
    raise_value_error("an empty list of arrays has no schema: pass one empty array");
  }
  return make_stream(std::move(arrays));
}

DeviceArray take_array_of(PyObject* object, Copy copy, const char* function) {
  if (DeviceArray array = find_array(object)) return array;
  if (is_stream_capsule(object)) return gather_stream(open_stream(object), copy);
  if (PyTuple_Check(object) != 0) return take_pair(object, nullptr);
  if (PyType_Check(object) != 0) raise_unread(function, object);
  if (DeviceArray array = take_pyarrow_array(object)) return array;
  const Protocol* row = nullptr;
  const py::object method = find_method(object, &row);
  if (!method) return take_dataframe(object, copy, function);
  const py::object result = call_producer(method, row->name, object);
  return row->is_stream ? gather_stream(open_stream(result.ptr()), copy)
                        : take_pair(result.ptr(), row->name);
}

DeviceArray gather_stream(OwnedStream stream, Copy copy) {
  const py::gil_scoped_release release;
  const OwnedStream source = std::move(stream);
  Chunks chunks = read_stream(*source);
  if (copy == Copy::kNever && chunks.arrays.size() > 1) {
    raise_buffer_error("the stream has ", chunks.arrays.size(),
                       " chunks, and one array of them takes a copy: allow it with copy=None, or "
                       "read the chunks one by one");
  }
  return gather(std::move(chunks));
}

}  // namespace arrowdl::python
