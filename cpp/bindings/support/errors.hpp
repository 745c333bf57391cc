// Exceptions across the border: C++ to Python and the guards of raw C functions.
#pragma once

#include <pybind11/pybind11.h>

namespace arrowdl::python {

/// Sets the Python error that the C++ exception in flight stands for. To be called in a catch.
void set_python_error() noexcept;

/// Registers the translation of `Error` for functions that pybind11 wraps.
void register_errors();

/// Runs `body` and turns what it throws into a Python error and `failure`.
template <typename Body, typename Result = PyObject*>
Result guarded(const Body& body, Result failure = nullptr) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return failure;
  }
}

/// Puts a pending Python error aside: foreign callbacks run in between can't disturb it.
class PendingError {
 public:
  PendingError() noexcept { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~PendingError() { PyErr_Restore(type_, value_, traceback_); }
  PendingError(const PendingError&) = delete;
  PendingError& operator=(const PendingError&) = delete;

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

}  // namespace arrowdl::python
