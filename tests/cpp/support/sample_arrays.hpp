// Makes arrays for tests, with buffers of exactly the size that they need.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "support/exact_bytes.hpp"

namespace arrowdl::testing {

/// An array under construction: its schema and its C struct.
struct Sample {
  OwnedSchema schema;
  OwnedArray array;

  DeviceArray import(Device device = {}) && {
    return DeviceArray::import(std::move(schema), std::move(array), device);
  }
};

inline Buffer share(ExactBytes bytes) {
  const auto owner = std::make_shared<ExactBytes>(std::move(bytes));
  return Buffer(owner, owner->data(), owner->size());
}

template <typename T>
Buffer share(const std::vector<T>& values) {
  ExactBytes bytes(static_cast<int64_t>(values.size() * sizeof(T)));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
  return share(std::move(bytes));
}

/// Bits '0' and '1' as a bitmap; no buffer for an empty string.
inline Buffer bits(const std::string& text) {
  if (text.empty()) return Buffer();
  ExactBytes bytes(static_cast<int64_t>((text.size() + 7) / 8));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '1') bytes[static_cast<int64_t>(i / 8)] |= static_cast<uint8_t>(1 << (i % 8));
  }
  return share(std::move(bytes));
}

/// The rows of a sample: `length` rows from `offset` on, null where `validity` has a '0' (relative
/// to the start of the buffer; "" means no bitmap).
struct Rows {
  int64_t length;
  std::string validity = "";
  int64_t offset = 0;
};

inline Sample sample(OwnedSchema schema, const Rows& rows, std::vector<Buffer> buffers,
                     std::vector<OwnedArray> children = {}) {
  ArrayParts parts;
  parts.length = rows.length;
  parts.null_count = rows.validity.empty() ? 0 : -1;
  parts.offset = rows.offset;
  parts.buffers = std::move(buffers);
  parts.children = std::move(children);
  return Sample{std::move(schema), make_array(std::move(parts))};
}

template <typename T>
Sample primitive(const char* dtype, const std::vector<T>& values, const Rows& rows,
                 const char* name = "") {
  return sample(make_schema(*find_dtype(dtype), name), rows, {bits(rows.validity), share(values)});
}

inline Sample boolean(const std::string& values, const Rows& rows, const char* name = "") {
  return sample(make_nested_schema("b", {}, name), rows, {bits(rows.validity), bits(values)});
}

inline Sample nest(const char* format, std::vector<Sample> children, const Rows& rows,
                   const char* name = "") {
  std::vector<OwnedSchema> schemas;
  std::vector<OwnedArray> arrays;
  for (Sample& child : children) {
    schemas.push_back(std::move(child.schema));
    arrays.push_back(std::move(child.array));
  }
  return sample(make_nested_schema(format, std::move(schemas), name), rows, {bits(rows.validity)},
                std::move(arrays));
}

template <typename... Children>
std::vector<Sample> samples(Children... children) {
  std::vector<Sample> all;
  (all.push_back(std::move(children)), ...);
  return all;
}

/// The elements of a C-contiguous host tensor.
template <typename T>
std::vector<T> elements(const OwnedTensor& tensor) {
  int64_t size = 1;
  for (int32_t d = 0; d < tensor->ndim; ++d) size *= tensor->shape[d];
  std::vector<T> values(static_cast<std::size_t>(size));
  if (size > 0) std::memcpy(values.data(), tensor->data, values.size() * sizeof(T));
  return values;
}

inline std::vector<int64_t> shape(const OwnedTensor& tensor) {
  return std::vector<int64_t>(tensor->shape, tensor->shape + tensor->ndim);
}

}  // namespace arrowdl::testing
