// Describes arrays on devices to other processes, and opens what those describe.
#include <pybind11/pybind11.h>

#include <memory>
#include <string_view>
#include <utility>

#include "arrowdl/error.hpp"
#include "arrowdl/shared_copy.hpp"
#include "functions/functions.hpp"
#include "support/device_array_object.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The copy of `object` that processes share: one for all that it is sent to.
std::shared_ptr<const SharedCopy> find_shared_copy(PyObject* object) {
  const DeviceArray array = find_array(object);
  if (!array) {
    raise_type_error("expected a DeviceArray, got ", Py_TYPE(object)->tp_name);
  }
  auto& kept = reinterpret_cast<DeviceArrayObject*>(object)->shared;
  {
    const CriticalSection section(object);
    if (kept != nullptr) return kept;
  }
  std::shared_ptr<const SharedCopy> made;
  {
    const py::gil_scoped_release release;
    made = std::make_shared<const SharedCopy>(make_shared_copy(array));
  }
  const CriticalSection section(object);
  const bool is_released = !reinterpret_cast<DeviceArrayObject*>(object)->array;
  if (!is_released && kept == nullptr) kept = made;
  return made;
}

/// A descriptor of the caller's own: another thread may release the array meanwhile. -1: none.
int duplicate(const FileDescriptor& descriptor) {
  if (!descriptor) return -1;
  FileDescriptor duplicated = descriptor.duplicate();
  if (!duplicated) {
    PyErr_SetFromErrno(PyExc_OSError);
    throw py::error_already_set();
  }
  return duplicated.take();
}

py::tuple share_array(const py::object& array) {
  const std::shared_ptr<const SharedCopy> shared = find_shared_copy(array.ptr());
  return py::make_tuple(py::bytes(shared->description), duplicate(shared->memory));
}

/// Closes this process's descriptor of the copy that `object` keeps.
void forget_shared_copy(const py::object& object) {
  if (Py_TYPE(object.ptr()) != device_array_type) return;
  std::shared_ptr<const SharedCopy> dropped;
  const CriticalSection section(object.ptr());
  std::swap(dropped, reinterpret_cast<DeviceArrayObject*>(object.ptr())->shared);
}

py::object open_shared_array(const py::bytes& description, int descriptor) {
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
  m.def("share_array", &share_array, py::arg("array"),
        "Copy `array` to memory that other processes can open: its description for them, and a "
        "file descriptor of the memory that the caller closes, -1 for no memory.");
  m.def("forget_shared_copy", &forget_shared_copy, py::arg("array"),
        "Close the descriptor of the copy that `share_array` has made of `array`.");
  m.def("open_shared_array", &open_shared_array, py::arg("description"), py::arg("descriptor"),
        "Return the array that `share_array` of any process described; leaves the descriptor "
        "open.");
}

}  // namespace arrowdl::python
