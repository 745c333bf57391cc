// Reads the arguments of raw functions.
#include "support/arguments.hpp"

namespace arrowdl::python {

namespace py = pybind11;

Copy read_copy(PyObject* value) {
  if (value == nullptr || value == Py_None) return Copy::kIfNeeded;
  return read_bool("copy", value) ? Copy::kAlways : Copy::kNever;
}

bool read_bool(const char* name, PyObject* value) {
  if (value == Py_True) return true;
  if (value == Py_False) return false;
  raise_type_error(name, " must be True or False, got ", py::repr(value).cast<std::string>());
}

int32_t read_int32(const char* what, PyObject* value) {
  const int64_t number = read_int(what, value);
  if (number < INT32_MIN || number > INT32_MAX) {
    raise_value_error(what, " is ", number, ", which does not fit int32");
  }
  return static_cast<int32_t>(number);
}

std::optional<int64_t> find_int(const char* what, PyObject* value) {
  py::object number;
  if (!PyLong_Check(value)) {
    number = py::reinterpret_steal<py::object>(PyNumber_Index(value));
    if (!number) {
      PyErr_Clear();
      raise_type_error(what, " must be an integer, got ", py::repr(value).cast<std::string>());
    }
    value = number.ptr();
  }
  int overflow = 0;
  const int64_t result = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0) return {};
  return result;
}

int64_t read_int(const char* what, PyObject* value) {
  if (const std::optional<int64_t> number = find_int(what, value)) return *number;
  raise_value_error(what, " is ", py::repr(value).cast<std::string>(),
                    ", which does not fit int64");
}

}  // namespace arrowdl::python
