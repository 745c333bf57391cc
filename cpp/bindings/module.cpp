// The table of contents of arrowdl._core.
#include <pybind11/pybind11.h>

#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/used_streams.hpp"
#include "arrowdl/version.hpp"
#include "errors.hpp"
#include "functions.hpp"
#include "py_device.hpp"
#include "py_device_array.hpp"
#include "py_device_stream.hpp"
#include "py_schema.hpp"
#include "streams.hpp"
#include "tensor_block.hpp"

namespace py = pybind11;

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
  using namespace arrowdl::python;
  m.doc() = "arrowdl's compiled core. Use it through `arrowdl`.";
  m.attr("__version__") = arrowdl::version();
  register_errors();
  register_wait_guard();
  // Before the interpreter goes: no thread of ours may drop what needs it later.
  py::module_::import("atexit").attr("register")(py::cpp_function([] {
    const py::gil_scoped_release release;
    constexpr double kSeconds = 5;
    arrowdl::stop_prefetching(kSeconds);
    arrowdl::stop_releases();
  }));
  register_device(m);
  register_schema(m);
  register_device_array(m);
  register_device_stream(m);
  register_from_arrow(m);
  register_to_arrow(m);
  register_buffers(m);
  register_tensor_block(m);
  register_to_framework(m);
  m.def("live_objects", &arrowdl::live_objects,
        "How many objects that own foreign or exported memory are alive: zero when nothing leaks.");
}
