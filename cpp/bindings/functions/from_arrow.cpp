// The function from_arrow.
#include <pybind11/pybind11.h>

#include "arrowdl/error.hpp"
#include "functions/functions.hpp"
#include "import/arrow.hpp"
#include "schema/make_schema.hpp"
#include "support/arguments.hpp"
#include "support/device_array_object.hpp"
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

const Parameters<2> from_arrow_parameters("from_arrow", {"obj", "copy"}, 1, 1);

PyObject* from_arrow(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    if (n == 0) raise_type_error("from_arrow() needs an Arrow object");
    const auto [object, copy] = from_arrow_parameters.read(args, n, names);
    return wrap(take_array_of(object, read_sharing(copy))).release().ptr();
  });
}

constexpr const char* kFromArrowDoc = R"(from_arrow(obj, /, *, copy=None)
--

Import Arrow data of any library, on any device, as one array.

Parameters
----------
obj : DeviceArray, Arrow producer, data frame, or capsules
    An object with ``__arrow_c_device_array__``, ``__arrow_c_array__``,
    ``__arrow_c_device_stream__`` or ``__arrow_c_stream__`` (tried in that order), a tuple of
    capsules (schema, array), or a stream capsule. A stream is read to its end: one chunk is shared,
    several are gathered into one array. Otherwise an object with ``__dataframe__``, the dataframe
    interchange protocol, becomes a struct of its columns.
copy : bool, optional
    None copies if needed. False raises BufferError if several chunks or the layout of a frame's
    columns need a copy, and passes ``allow_copy=False`` to a frame. It does not affect copies that
    other producers make.

Returns
-------
DeviceArray
    Shares the producer's memory and keeps it alive, unless it is a copy.

Raises
------
TypeError
    `obj` has no Arrow protocol and is not a frame.
ValueError
    A struct or frame is malformed, a capsule was consumed before, or ``copy=True``.
BufferError
    `copy` forbids a copy that is needed, or the host cannot read the memory to copy.
RuntimeError
    The producer of a stream failed; its message is in the error.)";

PyMethodDef from_arrow_functions[] = {
    {"from_arrow", as_method(from_arrow), kFastCall, kFromArrowDoc},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void register_from_arrow(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), from_arrow_functions) != 0) throw py::error_already_set();
}

}  // namespace arrowdl::python
