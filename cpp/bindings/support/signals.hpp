// Python exceptions and signals on their way through native streams.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace arrowdl::python {

/// A Python exception that passes through streams, whose text any thread may ask for. pybind11's
/// own makes the text in `what`, and ends the process where there is no memory.
class PassingError final : public pybind11::error_already_set {
 public:
  explicit PassingError(const pybind11::error_already_set& error);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Runs pending signal handlers. Called without the GIL by a thread that waits; raises what a
/// handler raises, and RuntimeError when the interpreter ends.
void check_signals();

}  // namespace arrowdl::python
