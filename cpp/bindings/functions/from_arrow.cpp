// from_arrow, from_address, to_address
#include <pybind11/stl.h>

#include <optional>

#include "arrowdl/error.hpp"
#include "classes/device_array.hpp"
#include "classes/schema.hpp"
#include "functions/functions.hpp"
#include "import/arrow.hpp"
#include "schema/copy_schema.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

Copy read_sharing(PyObject* value) {
  const Copy copy = read_copy(value);
  if (copy != Copy::kAlways) return copy;
  raise_value_error(
      "copy=True: from_arrow() shares memory; copy=None copies where it has to, "
      "copy=False never does");
}

PyObject* from_arrow(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    if (n == 0) raise_type_error("from_arrow() needs an Arrow object");
    Copy copy = Copy::kIfNeeded;
    read_keywords("from_arrow", n, 1, args, names, [&](std::string_view name, PyObject* value) {
      if (name == "copy") copy = read_sharing(value);
      return name == "copy";
    });
    return wrap(take_array_of(args[0], copy)).release().ptr();
  });
}

using Address = std::optional<uintptr_t>;

template <typename Struct>
Struct* at_address(const char* name, uintptr_t address) {
  if (address == 0 || address % alignof(Struct) != 0) {
    raise_value_error(name, "=", address, " is not the address of a C struct");
  }
  return reinterpret_cast<Struct*>(address);
}

void check_choice(const char* function, const Address& array, const Address& schema,
                  const Address& stream) {
  if (stream ? !array && !schema : array || schema) return;
  raise_type_error(function, "() takes the address of array and schema, of one of them, or of a ",
                   "stream, which holds both");
}

OwnedDeviceArray take_array_at(uintptr_t address, bool device) {
  OwnedDeviceArray owned;
  if (device) {
    owned.reset(at_address<ArrowDeviceArray>("array", address));
  } else {
    ArrowArrayMove(at_address<ArrowArray>("array", address), &owned->array);
    owned->device_type = ARROW_DEVICE_CPU;
    owned->device_id = -1;
  }
  return owned;
}

template <typename Owned, typename Struct>
py::object take_stream_at(uintptr_t address) {
  Owned owned(at_address<Struct>("stream", address));
  OwnedStream stream;
  {
    const py::gil_scoped_release release;  // a producer's end may run any code, for any time
    stream = import_stream(std::move(owned), {release_with_gil, release_stream_with_gil});
  }
  return wrap(gather_stream(std::move(stream), Copy::kIfNeeded));
}

py::object take_schema_at(ArrowSchema* address) {
  OwnedSchema schema(address);
  parse_schema(*schema.get());
  return py::cast(Schema(std::move(schema)));
}

py::object from_address(const Address& array, const Address& schema, const Address& stream,
                        bool device) {
  check_choice("from_address", array, schema, stream);
  if (stream) {
    return device ? take_stream_at<OwnedDeviceArrayStream, ArrowDeviceArrayStream>(*stream)
                  : take_stream_at<OwnedArrayStream, ArrowArrayStream>(*stream);
  }
  if (!schema) raise_type_error("from_address() needs the schema of an array beside it");
  auto* c_schema = at_address<ArrowSchema>("schema", *schema);
  if (!array) return take_schema_at(c_schema);
  OwnedDeviceArray owned = take_array_at(*array, device);
  return wrap(DeviceArray::import(OwnedSchema(c_schema), std::move(owned), release_with_gil));
}

/// The schema of a producer of anything: of types and fields as well.
OwnedSchema find_schema(const py::object& source) {
  static PyObject* const name = interned("__arrow_c_schema__");
  const py::object method = find_attribute(source.ptr(), name);
  if (!method || PyType_Check(source.ptr()) != 0) {
    return take_array_of(source.ptr()).export_schema();
  }
  const auto parsed = take_schema(checked(PyObject_CallNoArgs(method.ptr())).ptr());
  return copy_schema(*parsed->schema.get());
}

void write_array(const py::object& source, uintptr_t array, const Address& schema, bool device) {
  ArrowSchema* c_schema = schema ? at_address<ArrowSchema>("schema", *schema) : nullptr;
  const DeviceArray exported = take_array_of(source.ptr());
  OwnedSchema owned_schema = exported.export_schema();
  if (device) {
    auto* target = at_address<ArrowDeviceArray>("array", array);
    exported.export_device_array().move(target);
  } else {
    auto* target = at_address<ArrowArray>("array", array);
    exported.export_array().move(target);
  }
  if (c_schema != nullptr) owned_schema.move(c_schema);
}

void write_stream(const py::object& source, uintptr_t stream, bool device) {
  if (device) {
    auto* target = at_address<ArrowDeviceArrayStream>("stream", stream);
    export_device_stream(take_stream_of(source.ptr())).move(target);
  } else {
    auto* target = at_address<ArrowArrayStream>("stream", stream);
    export_stream(take_stream_of(source.ptr())).move(target);
  }
}

void to_address(const py::object& source, const Address& array, const Address& schema,
                const Address& stream, bool device) {
  check_choice("to_address", array, schema, stream);
  if (stream) {
    write_stream(source, *stream, device);
  } else if (array) {
    write_array(source, *array, schema, device);
  } else {
    auto* target = at_address<ArrowSchema>("schema", *schema);
    find_schema(source).move(target);
  }
}

PyMethodDef functions[] = {
    {"from_arrow", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_arrow)),
     METH_FASTCALL | METH_KEYWORDS,
     "from_arrow(obj, /, *, copy=None)\n--\n\n"
     "Take an Arrow array from any library, on any device.\n\n"
     "Parameters\n----------\n"
     "obj : DeviceArray, Arrow producer, data frame, or capsules\n"
     "    Anything with ``__arrow_c_device_array__``, ``__arrow_c_array__``,\n"
     "    ``__arrow_c_device_stream__`` or ``__arrow_c_stream__`` (tried in that order), a tuple\n"
     "    of capsules (schema, array), or a stream capsule. A stream is read to its end: one\n"
     "    chunk is taken as it is, several are gathered into one array. Without any of those a\n"
     "    frame's ``__dataframe__``, the interchange protocol, gives a struct of its columns.\n"
     "copy : bool, optional\n"
     "    False raises BufferError where several chunks or the layout of a frame's columns need a\n"
     "    copy; None copies. What the producer does to hand its data out is its own affair, but a\n"
     "    frame gets to know by ``allow_copy``.\n\n"
     "Returns\n-------\nDeviceArray\n    Shares the producer's memory and keeps it alive.\n\n"
     "Raises\n------\n"
     "TypeError\n    No Arrow protocol, and no frame.\n"
     "ValueError\n    Malformed structs or frames, or a capsule that was consumed before.\n"
     "BufferError\n    A copy that `copy` forbids, or that would need the host to read a device.\n"
     "RuntimeError\n    The producer of a stream failed; its message is in the error."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void register_from_arrow(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
  py::options options;
  options.disable_function_signatures();
  m.def("from_address", &from_address, py::arg("array") = py::none(),
        py::arg("schema") = py::none(), py::kw_only(), py::arg("stream") = py::none(),
        py::arg("device") = false,
        R"(from_address(array=None, schema=None, *, stream=None, device=False)
--

Take an array from the addresses of its C structs, for cffi, ctypes, R and Julia.

Parameters
----------
array : int, optional
    Address of an ArrowArray, or with ``device=True`` of an ArrowDeviceArray. Moved from: marked
    released afterwards, on failure too.
schema : int, optional
    Address of the ArrowSchema that goes with it. Moved from likewise. Alone: a schema is taken.
stream : int, optional
    Address of an ArrowArrayStream, or with ``device=True`` of an ArrowDeviceArrayStream, in place
    of both. Moved from likewise, and read to its end as `from_arrow` reads one.
device : bool
    Which of the two array or stream structs it is.

Returns
-------
DeviceArray or Schema
    A Schema where its address is all that was given.

Raises
------
ValueError
    Structs that are malformed, released, or contradict each other. That an address points to a
    struct at all cannot be checked.
RuntimeError
    The producer of a stream failed; its message is in the error.
TypeError
    No address, an array without its schema, or a stream besides.)");
  m.def("to_address", &to_address, py::arg("source"), py::arg("array") = py::none(),
        py::arg("schema") = py::none(), py::kw_only(), py::arg("stream") = py::none(),
        py::arg("device") = false,
        R"(to_address(source, array=None, schema=None, *, stream=None, device=False)
--

Write an Arrow array into C structs at the given addresses, which then own what they were given.

Parameters
----------
source : DeviceArray, Arrow producer, or list of those
    What `from_arrow` takes. For a schema alone anything with ``__arrow_c_schema__``. A stream gets
    the chunks of a stream as they come, and each item of a list as a chunk.
array : int, optional
    Address of an uninitialised or released ArrowArray, or with ``device=True`` ArrowDeviceArray.
schema : int, optional
    Address of an uninitialised or released ArrowSchema.
stream : int, optional
    Address of an uninitialised or released ArrowArrayStream, or with ``device=True``
    ArrowDeviceArrayStream, in place of both.
device : bool
    Which of the two array or stream structs it is.

Raises
------
BufferError
    ``device=False`` for memory that the host cannot read. The structs stay untouched on errors.
ValueError
    Not the address of a struct, or chunks that do not share one schema and device type.
TypeError
    No address, or a stream besides.)");
}

}  // namespace arrowdl::python
