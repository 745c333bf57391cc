// Defines constructors of pybind11's classes that are safe if memory runs out (see values.hpp).
#pragma once

#include <pybind11/pybind11.h>

namespace arrowdl::python {

/// Makes `make`, which returns a value, the constructor of the class. pybind11's own constructors
/// abort the process if there is no memory.
template <typename T, typename Make, typename... Extra>
void define_constructor(pybind11::class_<T>& type, Make make, const Extra&... extra) {
  type.def_static("__new__", make, pybind11::arg("cls"), extra...);
  reinterpret_cast<PyTypeObject*>(type.ptr())->tp_init = [](PyObject*, PyObject*, PyObject*) {
    return 0;
  };
}

}  // namespace arrowdl::python
