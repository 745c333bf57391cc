// Imports tensors by other protocols than DLPack.
#pragma once

#include <pybind11/cast.h>

#include <optional>
#include <string>

#include "arrowdl/dtype.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl::python {

/// A producer's tensor, and the event that completes when its memory is ready.
struct TakenTensor {
  OwnedTensor tensor;
  OwnedEvent event;
  std::string time_format = {};  ///< of `ToArrowOptions`; empty for numbers
};

/// Which elements a caller takes.
enum class Elements {
  kDlpacks,  ///< those that the producer exports by DLPack, or by a protocol like it
  kArrows,   ///< also NumPy's times and the types of ml_dtypes
};

/// Whether `object` has `__cuda_array_interface__` or `__sycl_usm_array_interface__`: dictionaries
/// that describe device memory, of libraries without DLPack.
bool has_array_interface(PyObject* object);

/// The tensor that one of them describes; it keeps `object` alive. Its event is recorded on
/// `stream` if that is not None, else on the stream or queue that the dictionary names. Raises
/// ValueError for a dictionary that breaks its protocol, BufferError for tensors that Arrow cannot
/// carry or whose device is not known.
TakenTensor take_array_interface(PyObject* object, PyObject* stream);

/// A read-only view of the memory of `object`, which cannot be resized while the view exists.
/// Raises BufferError for an element format without a dtype, or the exporter's error.
OwnedTensor take_buffer(PyObject* object);

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
