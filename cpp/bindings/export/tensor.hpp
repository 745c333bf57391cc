// The Python class Tensor: a tensor on its way to a consumer of the Python protocol.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>

#include "arrowdl/device.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "support/values.hpp"

namespace arrowdl::python {

/// Reads a tensor from an array on a device, for a consumer that is ordered as it is told.
using ReadTensor = std::function<OwnedTensor(const Order&)>;

/// Good for one `__dlpack__`. A tensor of a device is read only then, when the consumer's stream is
/// known.
class Tensor {
 public:
  Tensor() = default;  ///< holds nothing yet
  explicit Tensor(OwnedTensor tensor);
  Tensor(const Device& device, const Dtype& dtype, ReadTensor read);

  pybind11::object dlpack(const pybind11::object& stream, const pybind11::object& max_version,
                          const pybind11::object&, const pybind11::object&);
  pybind11::tuple dlpack_device() const;
  const char* dtype() const { return dtype_->name; }

 private:
  Device device_;
  const Dtype* dtype_ = nullptr;
  ReadTensor read_;
  OwnedTensor tensor_;
};

/// Adds the class to the module.
void register_tensor(pybind11::module_& m);

}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::Tensor)
