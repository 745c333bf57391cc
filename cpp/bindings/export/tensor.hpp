// The Python class Tensor, which passes a tensor to a consumer of the Python protocol.
#pragma once

#include <pybind11/cast.h>

#include <functional>

#include "arrowdl/device.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "support/module.hpp"
#include "support/values.hpp"

namespace arrowdl::python {

/// Makes a tensor of an array on a device, and orders the consumer.
using ReadTensor = std::function<OwnedTensor(const Order&)>;

/// What `read` makes for the consumer that `order` names. Raises RuntimeError unless it is on
/// `device`: a consumer would read other memory.
OwnedTensor read_on(const Device& device, const ReadTensor& read, const Order& order);

/// A tensor for one call of `__dlpack__`. A tensor on a device is made in that call, which names
/// the consumer's stream.
class Tensor {
 public:
  Tensor() = default;  ///< holds nothing yet
  /// With `in_place` the consumer must share the memory.
  Tensor(OwnedTensor tensor, bool in_place);
  Tensor(const Device& device, const Dtype& dtype, ReadTensor read, bool in_place);

  /// `self` is the Python object of this tensor, in each function that consumes it.
  pybind11::object dlpack(PyObject* self, PyObject* stream, bool is_versioned);
  pybind11::tuple dlpack_device() const;
  /// This tensor as unsigned integers of as many bytes: packed values as their bytes. Raises
  /// BufferError if `is_copied`, by a framework that reads no packed values, where the consumer
  /// must share the memory.
  Tensor as_integers(PyObject* self, bool is_copied);
  const char* dtype() const { return dtype_->name; }

 private:
  /// What is left to export: a function that makes it, or the tensor.
  struct Content {
    ReadTensor read;
    OwnedTensor tensor;
  };

  /// For one thread alone. Raises ValueError if another one was first.
  Content take(PyObject* self);

  Device device_;
  const Dtype* dtype_ = nullptr;
  Content content_;
  bool in_place_ = false;
};

/// Adds the class to the module.
void register_tensor(pybind11::module_& m);

}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::Tensor)
