// Adds the functions to the module. Those that are called per tensor are raw METH_FASTCALL
// functions, since pybind11's cost more.
#pragma once

#include "support/module.hpp"

namespace arrowdl::python {

/// to_arrow_device
void register_to_arrow(pybind11::module_& m);
/// from_arrow
void register_from_arrow(pybind11::module_& m);
/// import_schema, export_schema and the other functions of arrowdl.c_data
void register_c_data(pybind11::module_& m);
/// register_synchronizer, and the functions of arrowdl.config
void register_settings(pybind11::module_& m);
/// live_objects and the other counters of arrowdl.debug
void register_diagnostics(pybind11::module_& m);
/// assemble, borrow_memory and other functions over buffers, for arrowdl's own Python
void register_buffers(pybind11::module_& m);
/// read_parquet_footers, for the Loader
void register_footers(pybind11::module_& m);
/// take_rows and what it needs, for Loader.map_dataset
void register_take_rows(pybind11::module_& m);
/// to_torch, to_jax, to_numpy
void register_to_framework(pybind11::module_& m);

}  // namespace arrowdl::python
