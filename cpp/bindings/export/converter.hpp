// Converts an Arrow array to a framework's tensors, for to_torch, to_jax and to_numpy.
#pragma once

#include <pybind11/cast.h>

#include <optional>
#include <vector>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "convert/split_tensor.hpp"
#include "export/convert_options.hpp"
#include "export/framework.hpp"
#include "export/tensor.hpp"

namespace arrowdl::python {

/// The size in bytes from which a copy releases the GIL.
constexpr int64_t kLargeSize = 64 << 10;

class Converter {
 public:
  Converter(const Framework& framework, const ConvertOptions& options)
      : framework_(framework), options_(options) {}

  /// A tensor, a pair or triple of tensors, or a dict of those by the names of a struct's fields.
  /// Raises BufferError for what the type, the options or the framework do not allow.
  pybind11::object convert(const DeviceArray& array) const;

  /// The fields of a struct as one matrix (rows, columns). Raises ValueError for other arrays.
  pybind11::object stack(const DeviceArray& array) const;

  /// A tensor without nulls.
  pybind11::object convert(OwnedTensor tensor) const { return make(std::move(tensor)); }

  /// The tensor `view`, a part of `array`. Memory that the host can read is ready, and the caller
  /// may write to it.
  pybind11::object convert(const DeviceArray& array, TensorView view) const;

 private:
  // converter.cpp: all types
  pybind11::object convert_column(const DeviceArray& array) const;
  bool needs_host(const DeviceArray& array) const;
  Converter for_copy_of(const DeviceArray& array) const;
  pybind11::object convert_struct(const DeviceArray& array) const;
  pybind11::object convert_field(const DeviceArray& array, const char* name) const;
  template <typename Convert>
  static pybind11::object naming_field(const char* name, const Convert& convert);
  pybind11::object convert_plain_field(const DeviceArray& array, int64_t i) const;
  pybind11::object convert_field_of(const DeviceArray& array, int64_t i, const char* name) const;
  Converter with_parent(const DeviceArray& array) const;
  Converter with_access_to_new() const;
  Converter with_options(const ConvertOptions& options) const;
  bool casts(const Type& type) const;
  DeviceArray cast(const DeviceArray& array) const;
  Converter after_cast() const;
  DeviceArray cast_fields(const DeviceArray& array) const;
  std::vector<Nulls> list_nulls(const DeviceArray& array) const;

  bool is_masked() const { return options_.nulls == NullPolicy::kMask; }
  Nulls value_nulls() const { return to_nulls(options_.nulls); }
  bool moves(const Device& from) const;
  void require_copy_allowed(const DeviceArray& array, const char* reason) const;
  Copy choose_copy(const DeviceArray& array) const;

  OwnedTensor export_values(const DeviceArray& array) const;
  OwnedTensor export_elements(const DeviceArray& array, const ToDlpackOptions& options) const;
  pybind11::object make(OwnedTensor tensor) const;
  pybind11::object make_offsets(OwnedTensor tensor) const;
  pybind11::object make_by(PyObject* from_dlpack, OwnedTensor tensor) const;
  OwnedTensor align_large(OwnedTensor tensor) const;

  /// `values`, or with nulls="mask" a pair of `values` and the tensor of `make_mask()`.
  template <typename MakeMask>
  pybind11::object with_mask(pybind11::object values, const MakeMask& make_mask) const {
    if (!is_masked()) return values;
    return pybind11::make_tuple(std::move(values), make(make_mask()));
  }
  pybind11::object with_row_mask(pybind11::object values, const DeviceArray& array) const;

  // converter_lists.cpp: ragged rows
  ListParts split(const DeviceArray& array) const;
  pybind11::object convert_list(const DeviceArray& array) const;
  pybind11::object convert_parts(const ListParts& parts, const DeviceArray& array) const;
  pybind11::object pad(const ListParts& parts) const;
  pybind11::object jag(const ListParts& parts, const DeviceArray& lists) const;
  pybind11::object convert_variable(const DeviceArray& array) const;
  pybind11::object convert_elements(const DeviceArray& values, const DeviceArray& lists) const;
  void require_whole(const DeviceArray& elements) const;
  OwnedTensor export_offsets(const DeviceArray& offsets, const Order& order,
                             bool moves_rows = false) const;
  pybind11::object convert_offsets(const DeviceArray& offsets) const;

  // converter_on_device.cpp: memory that the host cannot read
  pybind11::object convert_on_device(const DeviceArray& array) const;
  pybind11::object build_from_parts(const DeviceArray& array, const TensorParts& parts) const;
  pybind11::object unpack_bits(const BitParts& bits) const;
  pybind11::object share_view(const DeviceArray& array, const TensorView& view) const;
  pybind11::object make_on_device(const DeviceArray& array, const Dtype& dtype,
                                  ReadTensor read) const;
  bool gives_memory() const { return framework_.donates && options_.is_copy; }
  bool is_misaligned(const TensorView& view) const;
  bool is_misaligned(const DeviceArray& array) const;
  bool must_move(const DeviceArray& array, const TensorView& view) const;
  pybind11::object make_on_device(PyObject* from_dlpack, const DeviceArray& array,
                                  const Dtype& dtype, ReadTensor read) const;
  pybind11::object make_of(const DeviceArray& array, const Dtype& dtype, ReadTensor read) const;
  bool replaces_nulls(const TensorParts& parts) const;
  bool is_shared(const TensorParts& parts) const;
  Order choose_order(const Device& device) const;

  const Framework& framework_;
  ConvertOptions options_;
  std::vector<DeviceArray> parents_ = {};  ///< structs whose nulls are not in their fields
};

/// Calls a framework's function.
template <typename... Args>
pybind11::object call_framework(PyObject* function, const Args&... args) {
  PyObject* result = PyObject_CallFunctionObjArgs(function, args.ptr()..., nullptr);
  if (result == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(result);
}

inline pybind11::list to_list(const std::vector<int64_t>& numbers) {
  pybind11::list list;
  for (const int64_t number : numbers) list.append(number);
  return list;
}

}  // namespace arrowdl::python
