// The functions of the module. Those called for every tensor take their arguments as raw
// METH_FASTCALL functions.
#pragma once

#include <pybind11/pybind11.h>

namespace arrowdl::python {

/// to_arrow_device
void register_to_arrow(pybind11::module_& m);
/// from_arrow, from_address, to_address
void register_from_arrow(pybind11::module_& m);
/// assemble, share_buffer and what else arrowdl's own Python makes arrays of buffers with
void register_buffers(pybind11::module_& m);
/// to_torch, to_jax, to_numpy
void register_to_framework(pybind11::module_& m);

}  // namespace arrowdl::python
