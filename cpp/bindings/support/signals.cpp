// Carries Python exceptions and signals through native streams.
#include "support/signals.hpp"

#include "arrowdl/error.hpp"
#include "support/gil.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

std::string describe(PyObject* error) {
  const auto text = py::reinterpret_steal<py::object>(PyObject_Str(error));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
  if (utf8 == nullptr) PyErr_Clear();
  return concat(Py_TYPE(error)->tp_name, ": ", utf8 == nullptr ? "(str() of it fails)" : utf8);
}

}  // namespace

PassingError::PassingError(const py::error_already_set& error)
    : py::error_already_set(error), text_(describe(error.value().ptr())) {}

void check_signals() {
  if (is_ending()) throw Error(ErrorKind::kRuntime, "the interpreter is ending, so this wait ends");
  require_gil([] {
    if (PyErr_CheckSignals() != 0) throw PassingError(py::error_already_set());
  });
}

}  // namespace arrowdl::python
