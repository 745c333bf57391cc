// Declares pybind11's module, for headers of functions that register something in it.
//
// pybind11.h defines it. Each file that includes that compiles the whole of pybind11 (GCC emits the
// vtable of error_already_set, which calls it all), so our headers include cast.h, a quarter of it.
#pragma once

namespace pybind11 {
class module_;
}
