// from_arrow(obj), from_address(array, schema), to_address(source, array, schema)
#include "arguments.hpp"
#include "arrays.hpp"
#include "arrowdl/error.hpp"
#include "capsule.hpp"
#include "errors.hpp"
#include "functions.hpp"
#include "py_device_array.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

PyObject* from_arrow(PyObject*, PyObject* object) noexcept {
  return guarded([&] { return wrap(take_array_of(object)).release().ptr(); });
}

template <typename Struct>
Struct* at_address(const char* name, uintptr_t address) {
  if (address == 0 || address % alignof(Struct) != 0) {
    raise_value_error(name, "=", address, " is not the address of a C struct");
  }
  return reinterpret_cast<Struct*>(address);
}

py::object from_address(uintptr_t array, uintptr_t schema, bool device) {
  auto* c_schema = at_address<ArrowSchema>("schema", schema);
  OwnedDeviceArray owned;
  if (device) {
    owned.reset(at_address<ArrowDeviceArray>("array", array));
  } else {
    ArrowArrayMove(at_address<ArrowArray>("array", array), &owned->array);
    owned->device_type = ARROW_DEVICE_CPU;
    owned->device_id = -1;
  }
  return wrap(DeviceArray::import(OwnedSchema(c_schema), std::move(owned), release_with_gil));
}

void to_address(const py::object& source, uintptr_t array, uintptr_t schema, bool device) {
  auto* c_schema = at_address<ArrowSchema>("schema", schema);
  const DeviceArray exported = take_array_of(source.ptr());
  OwnedSchema owned_schema = exported.export_schema();
  if (device) {
    auto* target = at_address<ArrowDeviceArray>("array", array);
    exported.export_device_array().move(target);
  } else {
    auto* target = at_address<ArrowArray>("array", array);
    exported.export_array().move(target);
  }
  owned_schema.move(c_schema);
}

PyMethodDef functions[] = {
    {"from_arrow", from_arrow, METH_O,
     "from_arrow(obj, /)\n--\n\n"
     "Take an Arrow array from any library, on any device.\n\n"
     "Parameters\n----------\n"
     "obj : DeviceArray, Arrow producer, or capsules\n"
     "    Anything with ``__arrow_c_device_array__``, ``__arrow_c_array__``,\n"
     "    ``__arrow_c_device_stream__`` or ``__arrow_c_stream__`` (tried in that order), a tuple\n"
     "    of capsules (schema, array), or a stream capsule. A stream is read to its end: one\n"
     "    chunk is taken as it is, several are gathered into one array.\n\n"
     "Returns\n-------\nDeviceArray\n    Shares the producer's memory and keeps it alive.\n\n"
     "Raises\n------\n"
     "TypeError\n    No Arrow protocol.\n"
     "ValueError\n    Malformed structs, or a capsule that was consumed before.\n"
     "RuntimeError\n    The producer of a stream failed; its message is in the error."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void register_from_arrow(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
  py::options options;
  options.disable_function_signatures();
  m.def("from_address", &from_address, py::arg("array"), py::arg("schema"), py::kw_only(),
        py::arg("device") = false,
        R"(from_address(array, schema, *, device=False)
--

Take an array from the addresses of its C structs, for cffi, ctypes, R and Julia.

Parameters
----------
array : int
    Address of an ArrowArray, or with ``device=True`` of an ArrowDeviceArray. Moved from: marked
    released afterwards, on failure too.
schema : int
    Address of an ArrowSchema. Moved from likewise.
device : bool
    Which of the two array structs it is.

Returns
-------
DeviceArray

Raises
------
ValueError
    Structs that are malformed, released, or contradict each other. That an address points to a
    struct at all cannot be checked.)");
  m.def("to_address", &to_address, py::arg("source"), py::arg("array"), py::arg("schema"),
        py::kw_only(), py::arg("device") = false,
        R"(to_address(source, array, schema, *, device=False)
--

Write an Arrow array into C structs at the given addresses.

Parameters
----------
source : DeviceArray or Arrow producer
array : int
    Address of an uninitialised or released ArrowArray, or with ``device=True`` ArrowDeviceArray.
schema : int
    Address of an uninitialised or released ArrowSchema.
device : bool
    Which of the two array structs it is.

Raises
------
BufferError
    ``device=False`` for memory that the host cannot read. The structs stay untouched on errors.)");
}

}  // namespace arrowdl::python
