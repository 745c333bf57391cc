// Turns C++ exceptions into Python exceptions.
#include "support/errors.hpp"

#include <pybind11/pybind11.h>

#include <cstring>
#include <new>

#include "arrowdl/error.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

PyObject* exception_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kBuffer:
      return PyExc_BufferError;
    case ErrorKind::kValue:
      return PyExc_ValueError;
    case ErrorKind::kType:
      return PyExc_TypeError;
    case ErrorKind::kIndex:
      return PyExc_IndexError;
    case ErrorKind::kMemory:
      return PyExc_MemoryError;
    case ErrorKind::kNotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::kRuntime:
      break;
  }
  return PyExc_RuntimeError;
}

/// Messages contain names and formats of foreign structs, which may hold any bytes.
void set_error(const Error& error) noexcept {
  const char* text = error.what();
  PyObject* message =
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "backslashreplace");
  if (message == nullptr) return;
  PyErr_SetObject(exception_of(error.kind()), message);
  Py_DECREF(message);
}

}  // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const Error& error) {
    set_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "arrowdl: an unknown C++ exception");
  }
}

void register_errors() {
  py::register_exception_translator([](std::exception_ptr pending) {
    try {
      std::rethrow_exception(pending);
    } catch (const Error& error) {
      set_error(error);
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    }
  });
}

}  // namespace arrowdl::python
