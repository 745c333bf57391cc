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
    {"arrowdl._frameworks.torch", "explain_device"},
    {"arrowdl._frameworks", "load"},
    {"arrowdl._frameworks.numpy", "to_array"},
    {"arrowdl._containers", "to_arrow"},
    {"arrowdl._containers", "read_frame"},
    {"arrowdl._interchange.import_", "from_dataframe"},
    {"arrowdl._async_stream", "iterate"},
    {"arrowdl._frameworks.dpctl", "find_work"},
    {"arrowdl._frameworks.dpctl", "find_queue"},
    {"arrowdl._frameworks", "find_current"},
    {"arrowdl._frameworks.allocators", "find_allocator"},
    {"arrowdl._frameworks.allocators", "allocate_auto"},
    {"arrowdl._frameworks.allocators", "allocate_by_torch"},
    {"arrowdl._frameworks.allocators", "free_caches"},
    {"arrowdl._frameworks.jax_streams", "is_stream"},
    {"arrowdl._frameworks.jax_streams", "order_after_compute"},
    {"arrowdl._libraries", "explain_unread"},
    {"arrowdl._libraries", "annotate"},
    {"arrowdl._libraries", "refuse_objects"},
    {"arrowdl._libraries", "open_stream"},
    {"arrowdl._map", "map"},
};
static_assert(std::size(kRows) == static_cast<std::size_t>(Hook::kCount), "one row for each hook");

/// Never released: arrowdl is imported in the main interpreter only, and no static destructor may
/// run Python code.
std::atomic<PyObject*> known[std::size(kRows)];

py::object import_module(const char* module) {
  auto imported = py::reinterpret_steal<py::object>(PyImport_ImportModule(module));
  if (!imported) throw py::error_already_set();
  return imported;
}

}  // namespace

py::handle find_hook(Hook hook) {
  const auto index = static_cast<std::size_t>(hook);
  PyObject* found = known[index].load(std::memory_order_acquire);
  if (found != nullptr) return found;
  const Row& row = kRows[index];
  py::object function = import_module(row.module).attr(row.function);
  // If two threads import it, the first one's function is kept.
  if (known[index].compare_exchange_strong(found, function.ptr())) return function.release();
  return found;
}

py::object find_module(const char* name) {
  auto module = py::reinterpret_steal<py::object>(PyImport_GetModule(py::str(name).ptr()));
  if (!module && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return module;
}

void call_at_exit(py::handle function) { import_module("atexit").attr("register")(function); }

}  // namespace arrowdl::python
