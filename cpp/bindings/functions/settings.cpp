// The settings of arrowdl.config, and register_synchronizer.
#include <pybind11/pybind11.h>

#include <exception>

#include "arrowdl/backend.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/deferred_release.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/threads.hpp"
#include "export/allocator.hpp"
#include "functions/functions.hpp"
#include "support/gil.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// Calls a Python function on the thread that waits.
struct PythonSynchronizer {
  std::shared_ptr<PyObject> function;

  void operator()(EventHandle event, int64_t id) const {
    std::string failure;
    std::exception_ptr no_memory;
    const bool called = with_gil([&] {
      try {
        py::handle(function.get())(event.value(), id);
      } catch (const py::error_already_set& error) {
        try {
          failure = error.what();
        } catch (...) {  // no memory for the message
          no_memory = std::current_exception();
        }
      }
    });
    if (no_memory) std::rethrow_exception(no_memory);
    if (!called) failure = "the interpreter has ended";
    if (!failure.empty()) {
      throw Error(ErrorKind::kRuntime, concat("the registered synchronizer failed: ", failure));
    }
  }
};

void register_python_synchronizer(int32_t device_type, const py::object& function) {
  if (function.is_none()) {
    register_synchronizer(device_type, {});
    return;
  }
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_type_error("a synchronizer is a function of (sync_event, device_id), got ",
                     py::repr(function).cast<std::string>());
  }
  const auto drop = [](PyObject* held) { with_gil([&] { Py_DECREF(held); }); };
  std::shared_ptr<PyObject> held(py::object(function).release().ptr(), drop);
  register_synchronizer(device_type, PythonSynchronizer{std::move(held)});
}

}  // namespace

void register_settings(py::module_& m) {
  register_allocators(m);
  py::options options;
  options.disable_function_signatures();  // inspect.signature cannot read pybind11's
  m.def("register_synchronizer", &register_python_synchronizer, py::arg("device_type"),
        py::arg("function"),
        R"(register_synchronizer(device_type, function)
--

Support events on a device type for which arrowdl has no backend.

Parameters
----------
device_type : DeviceType or int
function : callable or None
    ``function(sync_event, device_id)`` waits on the host for the event at the address
    `sync_event`. arrowdl calls it on any thread that waits, with the GIL. None removes the
    function.

Raises
------
ValueError
    The type's events are always NULL, or the type has a backend.
TypeError
    `function` is not callable.)");
  // Documented as the properties of arrowdl.config.
  m.def("blocking_release", &is_blocking_release);
  m.def("set_blocking_release", &set_blocking_release, py::arg("value"));
  m.def("release_limit", &release_limit);
  m.def("set_release_limit", &set_release_limit, py::arg("value"));
  m.def("staging_limit", &staging_limit);
  m.def("set_staging_limit", &set_staging_limit, py::arg("value"),
        py::call_guard<py::gil_scoped_release>());
  m.def("num_threads", &thread_limit);
  m.def("set_num_threads", &set_thread_limit, py::arg("value"));
}

}  // namespace arrowdl::python
