// Describes arrays on devices to other processes, and opens what those describe.
#include <pybind11/pybind11.h>

#include <string_view>
#include <utility>

#include "arrowdl/error.hpp"
#include "arrowdl/shared_copy.hpp"
#include "functions/functions.hpp"
#include "support/device_array_object.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The caller gets the descriptor; -1: none.
py::tuple share_copy(const py::object& object) {
  const DeviceArray array = find_array(object.ptr());
  if (!array) {
    raise_type_error("expected a DeviceArray, got ", Py_TYPE(object.ptr())->tp_name);
  }
  SharedCopy made;
  {
    const py::gil_scoped_release release;
    made = make_shared_copy(array);
  }
  py::tuple result = py::make_tuple(py::bytes(made.description), made.descriptor.get());
  made.descriptor.take();
  return result;
}

py::object open_copy(const py::bytes& description, int descriptor) {
  DeviceArray opened;
  {
    const std::string_view text = description;
    const py::gil_scoped_release release;
    opened = open_shared_copy(text, descriptor);
  }
  return wrap(std::move(opened));
}

}  // namespace

void register_processes(py::module_& m) {
  m.def("make_shared_copy", &share_copy, py::arg("array"),
        "Copy `array` to memory that other processes can open: its description for them, and a "
        "file descriptor of the memory that the caller closes, -1 for no memory.");
  m.def("open_shared_copy", &open_copy, py::arg("description"), py::arg("descriptor"),
        "Return the array that `make_shared_copy` of any process described; leaves the descriptor "
        "open.");
}

}  // namespace arrowdl::python
