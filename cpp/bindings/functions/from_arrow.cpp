// from_arrow(obj, *, copy)
#include "arrowdl/error.hpp"
#include "classes/device_array.hpp"
#include "functions/functions.hpp"
#include "import/arrow.hpp"
#include "schema/copy_schema.hpp"
#include "support/arguments.hpp"
#include "support/errors.hpp"

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
}

}  // namespace arrowdl::python
