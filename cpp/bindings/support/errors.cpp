// Turns C++ exceptions into Python exceptions.
#include "support/errors.hpp"

#include <pybind11/pybind11.h>

#include <new>
#include <string_view>

#include "arrowdl/error.hpp"
#include "support/objects.hpp"
#include "util/explained_error.hpp"

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
py::object decode(std::string_view text) {
  return checked(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

py::object decode_or_none(std::string_view text) {
  return text.empty() ? py::none() : decode(text);
}

/// The parts of the message as attributes of the exception.
void set_parts(const py::object& exception, const ExplainedError& error) {
  exception.attr("column") = error.column() ? decode(*error.column()) : py::object(py::none());
  exception.attr("row") = error.row() < 0 ? py::object(py::none()) : py::int_(error.row());
  exception.attr("reason") = decode(error.reason());
  exception.attr("hint") = decode_or_none(error.hint().text);
  exception.attr("option") = decode_or_none(error.hint().option);
}

void set_error(const Error& error) noexcept {
  try {
    PyObject* const type = exception_of(error.kind());
    const py::object exception = checked(PyObject_CallOneArg(type, decode(error.what()).ptr()));
    const auto* parts = dynamic_cast<const ExplainedError*>(&error);
    if (parts != nullptr) set_parts(exception, *parts);
    PyErr_SetObject(type, exception.ptr());
  } catch (py::error_already_set& failure) {
    failure.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
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
