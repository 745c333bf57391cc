// Imports each Python function that the bindings call once.
#include "support/python_hooks.hpp"

#include <atomic>
#include <iterator>

namespace arrowdl::python {
namespace {

namespace py = pybind11;

struct Row {
  const char* module;
  const char* function;
};

constexpr Row kRows[] = {
    {"arrowdl._frameworks", "find_device"},
    {"arrowdl._frameworks", "load"},
    {"arrowdl._frameworks.numpy", "to_array"},
    {"arrowdl._containers", "to_arrow"},
    {"arrowdl._interchange.export", "DataFrame"},
    {"arrowdl._interchange.import_", "from_dataframe"},
    {"arrowdl._frameworks.dpctl", "find_work"},
    {"arrowdl._frameworks.dpctl", "find_queue"},
    {"arrowdl._frameworks.jax_streams", "is_stream"},
    {"arrowdl._frameworks.jax_streams", "order_after_compute"},
};
static_assert(std::size(kRows) == static_cast<std::size_t>(Hook::kCount), "one row for each hook");

/// Never released: arrowdl is imported in the main interpreter only, and no static destructor may
/// run Python code.
std::atomic<PyObject*> known[std::size(kRows)];

}  // namespace

py::handle find_hook(Hook hook) {
  const auto index = static_cast<std::size_t>(hook);
  PyObject* found = known[index].load(std::memory_order_acquire);
  if (found != nullptr) return found;
  const Row& row = kRows[index];
  py::object function = py::module_::import(row.module).attr(row.function);
  // If two threads import it, the first one's function is kept.
  if (known[index].compare_exchange_strong(found, function.ptr())) return function.release();
  return found;
}

void call_at_exit(const py::cpp_function& function) {
  py::module_::import("atexit").attr("register")(function);
}

}  // namespace arrowdl::python
