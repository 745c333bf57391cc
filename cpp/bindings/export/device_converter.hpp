// Makes tensors of memory that the host cannot read.
#pragma once

#include "arrowdl/order.hpp"
#include "arrowdl/tensor_view.hpp"
#include "convert/split_tensor.hpp"
#include "export/conversion.hpp"
#include "export/tensor.hpp"

namespace arrowdl::python {

class DeviceConverter {
 public:
  /// `conversion` must outlive the converter.
  explicit DeviceConverter(const Conversion& conversion) noexcept : conversion_(conversion) {}

  /// The tensor of an array of fixed-width elements; with nulls="mask" a pair with the mask.
  pybind11::object convert(const DeviceArray& array) const;
  /// The tensor `view`, a part of `array`.
  pybind11::object share_view(const DeviceArray& array, const TensorView& view) const;
  /// Whether `view`, a part of `array`, has to be copied to be used. Raises if copies are refused.
  bool must_move(const DeviceArray& array, const TensorView& view) const;

  /// The tensor of `dtype` that `read` makes of `array`.
  pybind11::object make(const DeviceArray& array, const Dtype& dtype, ReadTensor read) const;
  pybind11::object make_offsets(const DeviceArray& array, const Dtype& dtype,
                                ReadTensor read) const;

 private:
  pybind11::object make_by(PyObject* from_dlpack, const DeviceArray& array, const Dtype& dtype,
                           ReadTensor read) const;
  pybind11::object build_from_parts(const DeviceArray& array, const TensorParts& parts) const;
  pybind11::object unpack_bits(const BitParts& bits) const;
  bool gives_memory() const;
  bool is_misaligned(const TensorView& view) const;
  bool is_misaligned(const DeviceArray& array) const;
  bool replaces_nulls(const TensorParts& parts) const;
  bool is_shared(const TensorParts& parts) const;
  Order choose_order(const Device& device) const;

  const Conversion& conversion_;
};

}  // namespace arrowdl::python
