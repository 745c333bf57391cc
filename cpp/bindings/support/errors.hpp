// Turns C++ exceptions into Python exceptions, and guards raw C functions.
#pragma once

#include <pybind11/cast.h>

namespace arrowdl::python {

/// Sets the Python error of the current C++ exception. Call it in a catch block.
void set_python_error() noexcept;

/// Registers the translation of `Error` for functions that pybind11 wraps.
void register_errors();

/// Returns `body()`. If it throws, sets the Python error and returns `failure`.
template <typename Body, typename Result = PyObject*>
Result guarded(const Body& body, Result failure = nullptr) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return failure;
  }
}

/// Saves a pending Python error, and restores it at the end of the scope.
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
