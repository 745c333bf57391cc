// arrowdl.c_data: imports and exports arrays, schemas and streams by the addresses of C structs.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "arrowdl/async_stream.hpp"
#include "arrowdl/error.hpp"
#include "classes/classes.hpp"
#include "classes/schema.hpp"
#include "functions/functions.hpp"
#include "import/arrow.hpp"
#include "support/capsule.hpp"
#include "support/device_array_object.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

template <typename Struct>
Struct* at_address(const char* name, uintptr_t address) {
  if (address == 0 || address % alignof(Struct) != 0) {
    raise_value_error(name, "=", address, " is not the address of a C struct");
  }
  return reinterpret_cast<Struct*>(address);
}

py::object import_schema(uintptr_t schema) {
  OwnedSchema owned(at_address<ArrowSchema>("schema", schema));
  parse_schema(*owned.get());
  return py::cast(Schema(std::move(owned)));
}

py::object import_owned(OwnedSchema schema, OwnedDeviceArray array) {
  return wrap(DeviceArray::import(std::move(schema), std::move(array), release_with_gil));
}

py::object import_array(uintptr_t array, uintptr_t schema) {
  auto* c_array = at_address<ArrowArray>("array", array);
  auto* c_schema = at_address<ArrowSchema>("schema", schema);
  OwnedDeviceArray owned;
  ArrowArrayMove(c_array, &owned->array);
  owned->device_type = ARROW_DEVICE_CPU;
  owned->device_id = -1;
  return import_owned(OwnedSchema(c_schema), std::move(owned));
}

py::object import_device_array(uintptr_t array, uintptr_t schema) {
  auto* c_array = at_address<ArrowDeviceArray>("array", array);
  auto* c_schema = at_address<ArrowSchema>("schema", schema);
  OwnedDeviceArray owned(c_array);
  return import_owned(OwnedSchema(c_schema), std::move(owned));
}

template <typename Owned, typename Struct>
py::object import_stream_at(uintptr_t stream) {
  Owned owned(at_address<Struct>("stream", stream));
  OwnedStream imported;
  {
    const py::gil_scoped_release release;  // the producer's callbacks may run any code
    imported =
        arrowdl::import_stream(std::move(owned), {release_with_gil, release_stream_with_gil});
  }
  return wrap(std::move(imported));
}

/// The schema of an array, a stream, a type or field, or any object with `__arrow_c_schema__`.
OwnedSchema find_schema(const py::object& source) {
  const py::object method = find_attribute(source.ptr(), names::arrow_c_schema);
  if (!method || PyType_Check(source.ptr()) != 0) {
    return take_array_of(source.ptr(), Copy::kIfNeeded, "export_schema").export_schema();
  }
  const auto parsed = take_schema(checked(PyObject_CallNoArgs(method.ptr())).ptr());
  OwnedSchema schema;
  if (ArrowSchemaDeepCopy(parsed->schema.get(), schema.get()) != NANOARROW_OK) {
    throw std::bad_alloc();
  }
  return schema;
}

void export_schema(const py::object& source, uintptr_t schema) {
  auto* target = at_address<ArrowSchema>("schema", schema);
  find_schema(source).move(target);
}

/// Lists the entries in their order; a dict would have one of each key.
py::list list_metadata(const py::object& source) {
  py::list entries;
  const OwnedSchema schema = find_schema(source);
  visit_metadata(*schema.get(), [&](std::string_view key, std::string_view value) {
    entries.append(
        py::make_tuple(py::bytes(key.data(), key.size()), py::bytes(value.data(), value.size())));
  });
  return entries;
}

using Address = std::optional<uintptr_t>;

/// Writes the struct that `make`, of the array, returns, and the schema if it has an address.
/// Writes neither if one of them fails.
template <typename Struct, typename Make>
void export_to(const char* function, const py::object& source, uintptr_t array,
               const Address& schema, Make make) {
  auto* target = at_address<Struct>("array", array);
  ArrowSchema* c_schema = schema ? at_address<ArrowSchema>("schema", *schema) : nullptr;
  const DeviceArray taken = take_array_of(source.ptr(), Copy::kIfNeeded, function);
  OwnedSchema owned_schema = taken.export_schema();
  (taken.*make)().move(target);
  if (c_schema != nullptr) owned_schema.move(c_schema);
}

void export_array(const py::object& source, uintptr_t array, const Address& schema) {
  export_to<ArrowArray>("export_array", source, array, schema, &DeviceArray::export_array);
}

void export_device_array(const py::object& source, uintptr_t array, const Address& schema) {
  export_to<ArrowDeviceArray>("export_device_array", source, array, schema,
                              &DeviceArray::export_device_array);
}

void export_stream_to(const py::object& source, uintptr_t stream) {
  auto* target = at_address<ArrowArrayStream>("stream", stream);
  export_stream(take_stream_of(source.ptr(), "export_stream")).move(target);
}

void export_device_stream_to(const py::object& source, uintptr_t stream) {
  auto* target = at_address<ArrowDeviceArrayStream>("stream", stream);
  export_device_stream(take_stream_of(source.ptr(), "export_device_stream")).move(target);
}

void export_async_stream_to(const py::object& source, uintptr_t handler) {
  auto* target = at_address<ArrowAsyncDeviceStreamHandler>("handler", handler);
  OwnedStream stream = take_stream_of(source.ptr(), "export_async_stream");
  const py::gil_scoped_release release;  // a stream that is dropped may run any code
  arrowdl::export_async_stream(std::move(stream), target);
}

std::string write_import_stream_doc(const char* name, const char* memory, const char* c_struct) {
  return concat(name, R"((stream)
--

Take a stream of arrays )",
                memory, R"( from its C struct.

Parameters
----------
stream : int
    The address of an )",
                c_struct, R"(. It is moved from: marked released on return, on failure too.

Returns
-------
DeviceStream
    Owns the producer's stream. Its schema has been read, its arrays have not.

Raises
------
ValueError
    A released struct, or a malformed schema.
RuntimeError
    The producer failed; its message is in the error.)");
}

std::string write_export_stream_doc(const char* name, const char* memory, const char* c_struct,
                                    const char* buffer_error) {
  return concat(name, R"((source, stream)
--

Write a stream of arrays )",
                memory, R"( into a C struct.

Parameters
----------
source : DeviceStream, Arrow producer, or list of arrays
    A stream in its own chunks, an array as one chunk, or each item of a list as a chunk. A
    DeviceStream is consumed.
stream : int
    The address of an uninitialised or released )",
                c_struct, R"(, which owns the stream afterwards. It stays
    untouched on errors.

Raises
------
)",
                buffer_error, R"(ValueError
    Not the address of a struct, an empty list, or arrays of several schemas or devices.
TypeError
    `source` is not Arrow data.)");
}

constexpr const char* kInHostMemory = "in host memory";
constexpr const char* kOnAnyDevice = "on any device";

void register_stream_functions(py::module_& m) {
  m.def("import_stream", &import_stream_at<OwnedArrayStream, ArrowArrayStream>, py::arg("stream"),
        write_import_stream_doc("import_stream", kInHostMemory, "ArrowArrayStream").c_str());
  m.def("import_device_stream", &import_stream_at<OwnedDeviceArrayStream, ArrowDeviceArrayStream>,
        py::arg("stream"),
        write_import_stream_doc("import_device_stream", kOnAnyDevice, "ArrowDeviceArrayStream")
            .c_str());
  m.def("export_stream", &export_stream_to, py::arg("source"), py::arg("stream"),
        write_export_stream_doc("export_stream", kInHostMemory, "ArrowArrayStream",
                                "BufferError\n    Memory that the host cannot read: use "
                                "`export_device_stream`.\n")
            .c_str());
  m.def("export_device_stream", &export_device_stream_to, py::arg("source"), py::arg("stream"),
        write_export_stream_doc("export_device_stream", kOnAnyDevice, "ArrowDeviceArrayStream", "")
            .c_str());
  m.def("export_async_stream", &export_async_stream_to, py::arg("source"), py::arg("handler"),
        R"(export_async_stream(source, handler)
--

Pass a stream of arrays on any device to an asynchronous consumer.

A thread calls the handler: with the schema at once, then with as many arrays as the consumer
requests. It reads one array ahead.

Parameters
----------
source : DeviceStream, Arrow producer, or list of arrays
    A stream in its own chunks, an array as one chunk, or each item of a list as a chunk. A
    DeviceStream is consumed.
handler : int
    The address of an ArrowAsyncDeviceStreamHandler that nothing else uses. It must live until its
    ``release`` is called, the last callback, which follows the end, an error or a cancellation.

Raises
------
ValueError
    Not the address of a handler, a callback that is NULL, or an empty list. No callback is called.
RuntimeError
    No thread can start. No callback is called.
TypeError
    `source` is not Arrow data.)");
}

/// `array_text` says what is at the address of the array.
std::string write_import_doc(const char* signature, const char* summary, const char* array_text,
                             const char* problem) {
  return concat(signature, "\n--\n\n", summary, "\n\nParameters\n----------\narray : int\n    ",
                array_text, R"(
schema : int
    The address of its ArrowSchema. Both structs are moved from: they are marked released on
    return, also on errors, except if an address is NULL or not aligned.

Returns
-------
DeviceArray
    Owns the memory, and calls the producer's ``release`` when the last reference to it is dropped.

Raises
------
ValueError
    The structs are malformed, released, or contradict each other)",
                problem);
}

void register_imports(py::module_& m) {
  m.def("import_schema", &import_schema, py::arg("schema"),
        R"(import_schema(schema)
--

Import an Arrow schema from its C struct.

Parameters
----------
schema : int
    The address of an ArrowSchema. The struct is moved from: it is marked released on return, also
    on errors.

Returns
-------
Schema

Raises
------
ValueError
    The struct is malformed or released. Whether an address holds a struct cannot be checked.)");
  m.def("import_array", &import_array, py::arg("array"), py::arg("schema"),
        write_import_doc("import_array(array, schema)",
                         "Import an array in host memory from its C structs, zero-copy.",
                         "The address of an ArrowArray.",
                         ". Whether an address holds a\n    struct cannot be checked.")
            .c_str());
  m.def("import_device_array", &import_device_array, py::arg("array"), py::arg("schema"),
        write_import_doc(
            "import_device_array(array, schema)",
            "Import an array on any device from its C structs, zero-copy and without waiting.",
            "The address of an ArrowDeviceArray. Uses of the memory wait for its ``sync_event``.",
            ", or have an unknown device type.")
            .c_str());
}

/// `waits` follows what the array shares, and `buffer_error` comes before the other errors.
std::string write_export_doc(const char* name, const char* memory, const char* c_struct,
                             const char* waits, const char* buffer_error) {
  return concat(name, "(source, array, schema=None)\n--\n\nWrite an array ", memory,
                R"( into C structs, zero-copy.

Parameters
----------
source : DeviceArray or Arrow producer
    What `from_arrow` takes.
array : int
    The address of an uninitialised or released )",
                c_struct, R"(, which shares the memory of
    `source` afterwards and keeps it alive until its ``release`` is called.)",
                waits, R"(
schema : int, optional
    The address of an uninitialised or released ArrowSchema. Errors leave both
    structs unchanged.

Raises
------
)",
                buffer_error, R"(ValueError
    An address is NULL or not aligned.
TypeError
    `source` is not Arrow data.)");
}

void register_exports(py::module_& m) {
  m.def("list_metadata", &list_metadata, py::arg("source"),
        "Return key and value of each entry of a schema's metadata, also of entries with one key.");
  m.def("export_schema", &export_schema, py::arg("source"), py::arg("schema"),
        R"(export_schema(source, schema)
--

Write an Arrow schema into a C struct.

Parameters
----------
source : object with ``__arrow_c_schema__``, or what `from_arrow` takes
schema : int
    The address of an uninitialised or released ArrowSchema, which owns the schema afterwards.
    Errors leave it unchanged.

Raises
------
ValueError
    `schema` is NULL or not aligned.
TypeError
    `source` has no schema.)");
  m.def("export_array", &export_array, py::arg("source"), py::arg("array"),
        py::arg("schema") = py::none(),
        write_export_doc("export_array", kInHostMemory, "ArrowArray", "",
                         "BufferError\n    The host cannot read the memory: use "
                         "`export_device_array`.\n")
            .c_str());
  m.def("export_device_array", &export_device_array, py::arg("source"), py::arg("array"),
        py::arg("schema") = py::none(),
        write_export_doc(
            "export_device_array", kOnAnyDevice, "ArrowDeviceArray",
            " A consumer waits for\n    its ``sync_event`` before it reads the memory.", "")
            .c_str());
}

}  // namespace

void register_c_data(py::module_& m) {
  py::options options;
  options.disable_function_signatures();
  register_imports(m);
  register_exports(m);
  register_stream_functions(m);
}

}  // namespace arrowdl::python
