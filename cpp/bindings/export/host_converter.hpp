// Makes tensors of memory that the host can read.
#pragma once

#include "arrowdl/to_dlpack.hpp"
#include "export/conversion.hpp"

namespace arrowdl::python {

class HostConverter {
 public:
  /// `conversion` must outlive the converter.
  explicit HostConverter(const Conversion& conversion) noexcept : conversion_(conversion) {}

  /// The tensor of an array of fixed-width elements; with nulls="mask" a pair with the mask.
  pybind11::object convert(const DeviceArray& array) const;
  /// The tensor of field `i` of a struct if it shares the memory as it is; an empty object
  /// otherwise.
  pybind11::object share_field(const DeviceArray& array, int64_t i) const;
  /// Exports elements; memory of the caller's own may be written to.
  OwnedTensor export_elements(const DeviceArray& array, ToDlpackOptions options) const;

  pybind11::object make(OwnedTensor tensor) const;
  pybind11::object make_offsets(OwnedTensor tensor) const;

 private:
  bool moves(const Device& from) const;
  Copy choose_copy(const DeviceArray& array) const;
  pybind11::object make_by(PyObject* from_dlpack, OwnedTensor tensor) const;
  OwnedTensor align_large(OwnedTensor tensor) const;

  const Conversion& conversion_;
};

}  // namespace arrowdl::python
