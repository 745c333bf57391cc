// Allocators of device memory that a caller names in Python.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/allocator.hpp"
#include "support/module.hpp"

namespace arrowdl::python {

/// The allocator that `object` names: "auto", "pool", a class with the DLPack exchange API, an
/// allocator of torch, CuPy or RMM, or a function of the number of bytes. Empty for nullptr and
/// None: the default allocator. Raises TypeError or ValueError for anything else.
Allocator read_allocator(PyObject* object);

/// Makes "auto" the default allocator, and lets other libraries free their caches when memory runs
/// out.
void register_allocators(pybind11::module_& m);

}  // namespace arrowdl::python
