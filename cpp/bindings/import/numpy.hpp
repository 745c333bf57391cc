// Views of NumPy's arrays whose types NumPy's own __dlpack__ refuses.
#pragma once

#include <pybind11/cast.h>

#include <optional>
#include <string>

#include "arrowdl/dtype.hpp"

namespace arrowdl::python {

/// Elements of a type that DLPack or NumPy lacks, as integers of the same bytes.
struct ElementView {
  pybind11::object integers;     ///< shares the array's memory
  const Dtype* dtype = nullptr;  ///< what the elements are
  std::string time_format;       ///< Arrow's format of times: "tsn:"; empty for other elements
};

/// Whether `object` is an array of NumPy. Imports nothing.
bool is_numpy_array(PyObject* object);

/// Whether `dtype` is one of NumPy's, of other values than NumPy's own numbers and bools: libraries
/// such as JAX have arrays of those too, which they export by themselves.
bool is_shared_dtype(const pybind11::object& dtype);

/// A scalar of NumPy as an array without dimensions; empty for other objects, and for bytes.
pybind11::object find_numpy_scalar(PyObject* object);

/// How to read the elements of `array`, an array of NumPy whose dtype is `dtype`: those of
/// ml_dtypes, and datetime64 and timedelta64 in Arrow's units. Empty if NumPy's `__dlpack__` takes
/// them. Raises BufferError, with the way out, for what a tensor cannot carry.
std::optional<ElementView> view_numpy(PyObject* array, const pybind11::object& dtype);

}  // namespace arrowdl::python
