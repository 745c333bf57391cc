// Converts an Arrow array to a framework's tensors, for to_torch, to_jax and to_numpy.
#pragma once

#include <pybind11/cast.h>

#include <utility>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
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

/// Takes structs and lists apart; `HostConverter` and `DeviceConverter` make the tensors.
class Converter : Conversion {
 public:
  explicit Converter(Conversion conversion) : Conversion(std::move(conversion)) {}
  Converter(const Framework& framework, const ConvertOptions& options)
      : Conversion{framework, options} {}

  /// A tensor, a pair or triple of tensors, or a dict of those by the names of a struct's fields.
  /// Raises BufferError for what the type, the options or the framework do not allow.
  pybind11::object convert(const DeviceArray& array) const;

  /// The fields of a struct as one matrix (rows, columns). Raises ValueError for other arrays.
  pybind11::object stack(const DeviceArray& array) const;

  /// A tensor without nulls.
  pybind11::object convert(OwnedTensor tensor) const { return host().make(std::move(tensor)); }

  /// The tensor `view`, a part of `array`. Memory that the host can read is ready, and the caller
  /// may write to it.
  pybind11::object convert(const DeviceArray& array, TensorView view) const;

 private:
  HostConverter host() const noexcept { return HostConverter(*this); }
  DeviceConverter device() const noexcept { return DeviceConverter(*this); }

  // converter.cpp: all types
  pybind11::object convert_rows(const DeviceArray& array) const;
  pybind11::object convert_column(const DeviceArray& array) const;
  pybind11::object convert_run_ends(const DeviceArray& array) const;
  bool needs_host(const DeviceArray& array) const;
  Converter for_copy_of(const DeviceArray& array) const;
  pybind11::object convert_struct(const DeviceArray& array) const;
  pybind11::object convert_field(const DeviceArray& array, const char* name) const;
  pybind11::object convert_field_of(const DeviceArray& array, int64_t i, const char* name) const;
  bool casts(const Type& type) const;
  DeviceArray cast(const DeviceArray& array) const;
  Converter after_cast() const;

  // converter_matrix.cpp
  DeviceArray cast_fields(const DeviceArray& array) const;
  DeviceArray cast_field(const DeviceArray& array, int64_t i) const;
  std::vector<Nulls> list_nulls(const DeviceArray& array) const;

  // converter_lists.cpp: ragged rows
  ListParts split(const DeviceArray& array) const;
  pybind11::object convert_list(const DeviceArray& array) const;
  pybind11::object convert_parts(const ListParts& parts, const DeviceArray& array) const;
  pybind11::object pad(const ListParts& parts) const;
  pybind11::object jag(const ListParts& parts, const DeviceArray& lists) const;
  pybind11::object convert_variable(const DeviceArray& array) const;
  pybind11::object convert_elements(const DeviceArray& values, const DeviceArray& lists) const;
  void require_whole(const DeviceArray& elements) const;
  pybind11::object convert_offsets(const DeviceArray& offsets) const;
  pybind11::object with_row_mask(pybind11::object values, const DeviceArray& array) const;
};

}  // namespace arrowdl::python
