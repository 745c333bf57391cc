// Reads the rows of an array of any type back as plain values.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "arrowdl/device_array.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {

// ---------------------------------------------------------------- reading

template <typename T>
T element(const DeviceArray& array, int64_t buffer, int64_t i) {
  T value;
  std::memcpy(&value, array.buffer_as<uint8_t>(buffer) + (array.offset() + i) * int64_t{sizeof(T)},
              sizeof(T));
  return value;
}

inline int64_t read_number(const DeviceArray& array, int64_t i) {
  const int64_t width = array.type().byte_width;
  if (width == 0) return 0;
  const auto* bytes = array.buffer_as<uint8_t>(1) + (array.offset() + i) * width;
  const bool is_negative = bytes[width - 1] >= 0x80 && array.type().schema->format[0] != 'C';
  int64_t n = is_negative ? -1 : 0;
  std::memcpy(&n, bytes, static_cast<std::size_t>(std::min<int64_t>(width, 8)));
  return n;
}

inline Value read_row(const DeviceArray& array, int64_t i);

inline Values read_rows(const DeviceArray& array, int64_t start, int64_t count) {
  Values values;
  for (int64_t i = 0; i < count; ++i) values.push_back(read_row(array, start + i));
  return values;
}

inline Values read_rows(const DeviceArray& array) { return read_rows(array, 0, array.length()); }

template <typename Offset>
Value read_list_row(const DeviceArray& array, int64_t i, bool is_view) {
  const int64_t start = element<Offset>(array, 1, i);
  const int64_t size =
      is_view ? int64_t{element<Offset>(array, 2, i)} : element<Offset>(array, 1, i + 1) - start;
  return items(read_rows(array.child(0), start, size));
}

template <typename Offset>
Value read_binary_row(const DeviceArray& array, int64_t i) {
  const Offset start = element<Offset>(array, 1, i);
  const Offset end = element<Offset>(array, 1, i + 1);
  return start == end ? text("")
                      : text(std::string(array.buffer_as<char>(2) + start,
                                         static_cast<std::size_t>(end - start)));
}

inline Value read_binary_view_row(const DeviceArray& array, int64_t i) {
  const auto view = element<ArrowBinaryViewRef>(array, 1, i);
  const char* data = view.size <= 12 ? array.buffer_as<char>(1) + (array.offset() + i) * 16 + 4
                                     : array.buffer_as<char>(2 + view.buffer_index) + view.offset;
  return text(std::string(data, static_cast<std::size_t>(view.size)));
}

inline Value read_union_row(const DeviceArray& array, int64_t i) {
  const std::vector<int8_t>& ids = array.type().type_ids;
  const auto at = std::find(ids.begin(), ids.end(), element<int8_t>(array, 0, i));
  const bool is_dense = array.type().layout == Layout::kDenseUnion;
  Value value = number(at - ids.begin());
  value.items.push_back(
      read_row(array.child(value.number), is_dense ? element<int32_t>(array, 1, i) : i));
  return value;
}

inline Value read_run(const DeviceArray& array, int64_t i) {
  int64_t run = 0;
  const DeviceArray ends = array.child(0);
  while (read_number(ends, run) <= array.offset() + i) ++run;
  return read_row(array.child(1), run);
}

inline Value read_row(const DeviceArray& array, int64_t i) {
  const Type& type = array.type();
  const uint8_t* validity = array.validity();
  const int64_t bit = array.offset() + i;
  if (type.layout == Layout::kNull) return null();
  if (validity != nullptr && (validity[bit / 8] >> (bit % 8) & 1) == 0) return null();
  if (type.dictionary != nullptr) return read_row(array.dictionary(), read_number(array, i));
  switch (type.layout) {
    case Layout::kBoolean:
      return number(array.buffer_as<uint8_t>(1)[bit / 8] >> (bit % 8) & 1);
    case Layout::kFixedWidth:
      return number(read_number(array, i));
    case Layout::kBinary:
      return read_binary_row<int32_t>(array, i);
    case Layout::kLargeBinary:
      return read_binary_row<int64_t>(array, i);
    case Layout::kBinaryView:
      return read_binary_view_row(array, i);
    case Layout::kList:
      return read_list_row<int32_t>(array, i, false);
    case Layout::kLargeList:
      return read_list_row<int64_t>(array, i, false);
    case Layout::kListView:
      return read_list_row<int32_t>(array, i, true);
    case Layout::kLargeListView:
      return read_list_row<int64_t>(array, i, true);
    case Layout::kFixedSizeList:
      return items(read_rows(array.child(0), i * type.list_size, type.list_size));
    case Layout::kStruct: {
      Value row;
      for (std::size_t c = 0; c < type.children.size(); ++c) {
        row.items.push_back(read_row(array.child(static_cast<int64_t>(c)), i));
      }
      return row;
    }
    case Layout::kSparseUnion:
    case Layout::kDenseUnion:
      return read_union_row(array, i);
    default:
      return read_run(array, i);
  }
}

// ---------------------------------------------------------------- the types to try

}  // namespace arrowdl::testing
