// Converts an Arrow array to a framework's tensors, for to_torch, to_jax and to_numpy.
#pragma once

#include <pybind11/cast.h>

#include <utility>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/lists.hpp"
#include "export/conversion.hpp"
#include "export/device_converter.hpp"
#include "export/host_converter.hpp"

namespace arrowdl::python {

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
