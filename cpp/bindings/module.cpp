#include <pybind11/pybind11.h>

namespace py = pybind11;

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) { m.doc() = "arrowdl's core"; }
