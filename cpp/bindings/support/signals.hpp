// Carries Python exceptions and signals through native streams.
#pragma once

#include <pybind11/cast.h>

#include <string>

namespace arrowdl::python {

/// A Python exception that passes through streams; any thread may call `what`. pybind11's own makes
/// the text in `what`, and aborts the process if there is no memory.
class PassingError final : public pybind11::error_already_set {
 public:
  explicit PassingError(const pybind11::error_already_set& error);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Runs pending signal handlers, for a thread that waits without the GIL. Raises the errors of the
/// handlers, and RuntimeError if the interpreter is ending.
void check_signals();

}  // namespace arrowdl::python
