// Keeps the Python thread state of arrowdl's own threads.
#include "support/gil.hpp"

#include "arrowdl/error.hpp"
#include "stream/background.hpp"

namespace arrowdl::python {
namespace {

void end_thread_state() {
  if (is_ending()) return;  // the interpreter removes it, or has done so
  PyEval_RestoreThread(PyGILState_GetThisThreadState());
  PyGILState_Release(PyGILState_UNLOCKED);
}

}  // namespace

void keep_thread_state() noexcept {
  if (PyGILState_GetThisThreadState() != nullptr || !at_background_end(end_thread_state)) return;
  PyGILState_Ensure();
  PyEval_SaveThread();
}

namespace {

namespace py = pybind11;

std::string text_of(PyObject* object) {
  const auto text = py::reinterpret_steal<py::object>(PyObject_Str(object));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
  if (utf8 == nullptr) PyErr_Clear();
  return utf8 == nullptr ? "(str() of it fails)" : utf8;
}

/// Its type, text and notes (PEP 678), as a traceback shows them.
std::string describe_error(PyObject* error) {
  std::string text = concat(Py_TYPE(error)->tp_name, ": ", text_of(error));
  const auto notes = py::reinterpret_steal<py::object>(PyObject_GetAttrString(error, "__notes__"));
  if (!notes) PyErr_Clear();
  if (!notes || PyList_Check(notes.ptr()) == 0) return text;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(notes.ptr()); ++i) {
    const auto note = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(notes.ptr(), i));
    text += concat("\n", text_of(note.ptr()));
  }
  return text;
}

}  // namespace

PassingError::PassingError(const py::error_already_set& error)
    : py::error_already_set(error), text_(describe_error(error.value().ptr())) {}

void check_signals() {
  if (is_ending()) throw Error(ErrorKind::kRuntime, "the interpreter is ending, so this wait ends");
  require_gil([] {
    if (PyErr_CheckSignals() != 0) throw PassingError(py::error_already_set());
  });
}

}  // namespace arrowdl::python
