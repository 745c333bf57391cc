// The table of contents of arrowdl._core.
#include <pybind11/pybind11.h>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/version.hpp"
#include "classes/classes.hpp"
#include "classes/schema.hpp"
#include "export/tensor.hpp"
#include "functions/functions.hpp"
#include "functions/tensor_block.hpp"
#include "import/pyarrow.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/names.hpp"
#include "support/python_hooks.hpp"

namespace py = pybind11;

namespace {

bool is_main_interpreter() noexcept {
  return PyInterpreterState_Get() == PyInterpreterState_Main();
}

constexpr const char* kMainOnly =
    "arrowdl cannot be imported in a sub-interpreter: any thread may call its exports, and Python "
    "lets foreign threads enter only the main interpreter. Import it there, or start a process";

}  // namespace

PYBIND11_MODULE(_core_of_main, m, py::mod_gil_not_used(),
                py::multiple_interpreters::not_supported()) {
  using namespace arrowdl::python;
  if (!is_main_interpreter()) throw py::import_error(kMainOnly);
  m.doc() = "arrowdl's compiled core. Import its public names from `arrowdl`.";
  m.attr("__version__") = arrowdl::version();
  InternedName::intern_all();
  prepare_pyarrow();
  register_errors();
  register_wait_guard();
  // Before the interpreter ends: later, no thread of ours may release Python objects.
  call_at_exit(py::cpp_function([] {
    const py::gil_scoped_release release;
    constexpr double kSeconds = 5;
    arrowdl::stop_background_reads(kSeconds);
    arrowdl::stop_releases();
  }));
  register_device(m);
  register_schema(m);
  register_column_options(m);
  register_device_array(m);
  register_device_stream(m);
  register_async_receiver(m);
  register_from_arrow(m);
  register_c_data(m);
  register_to_arrow(m);
  register_buffers(m);
  register_footers(m);
  register_tensor_block(m);
  register_take_rows(m);
  register_tensor(m);
  register_to_framework(m);
  register_settings(m);
  register_diagnostics(m);
}

/// The entry point of `_core`. Checks before pybind11 does, which would wait for the GIL of the
/// main interpreter forever. Some interpreters ignore the declaration of the module.
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  if (is_main_interpreter()) return PyInit__core_of_main();
  PyErr_SetString(PyExc_ImportError, kMainOnly);
  return nullptr;
}
