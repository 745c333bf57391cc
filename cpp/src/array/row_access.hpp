// Reads offsets, sizes and views of single rows. A producer wrote them, so each is checked against
// the memory that it refers to before it is used.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "arrowdl/device_array.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Rows `start` to `end()` of some array.
struct Range {
  int64_t start = 0;
  int64_t length = 0;

  int64_t end() const noexcept { return start + length; }
};

/// The elements of a buffer, by row of the window. Arrow recommends alignment but does not require
/// it, hence the memcpy, which costs nothing.
template <typename T>
class ElementReader {
 public:
  ElementReader(const DeviceArray& array, int64_t buffer) noexcept
      : bytes_(array.buffer_as<uint8_t>(buffer)), offset_(array.offset()) {}

  const uint8_t* address(int64_t i) const noexcept {
    return bytes_ + (offset_ + i) * static_cast<int64_t>(sizeof(T));
  }
  T operator[](int64_t i) const noexcept {
    T value;
    std::memcpy(&value, address(i), sizeof(T));
    return value;
  }

 private:
  const uint8_t* bytes_;
  int64_t offset_;
};

/// The validity of a window's rows.
class RowValidity {
 public:
  explicit RowValidity(const DeviceArray& array) noexcept
      : bits_(array.validity()), offset_(array.offset()) {}

  bool operator[](int64_t i) const noexcept {
    return bits_ == nullptr || get_bit(bits_, offset_ + i);
  }

 private:
  const uint8_t* bits_;
  int64_t offset_;
};

/// No limit: for offsets into the data of binary and string, whose size is not in the structs.
constexpr int64_t kNoLimit = INT64_MAX;

/// The range between the first and the last offset of `rows`, which must not be empty. Raises
/// ValueError unless the offsets ascend within [0, limit].
template <typename Offset>
Range read_offsets(const DeviceArray& array, Range rows, int64_t limit);

extern template Range read_offsets<int32_t>(const DeviceArray&, Range, int64_t);
extern template Range read_offsets<int64_t>(const DeviceArray&, Range, int64_t);

/// The child rows of row `i` of any list layout, whose child has `child_length` rows; no rows for a
/// null row of a list view, whose offset and size are undefined. Raises ValueError.
Range read_list(const DeviceArray& array, int64_t i, int64_t child_length);

/// Row `i` of a binary view; all zero for a null row. Raises ValueError unless it is within the
/// data buffers. The bytes of an inline view replace prefix, buffer_index and offset.
ArrowBinaryViewRef read_view(const DeviceArray& array, int64_t i);

/// The bytes of data buffer `i` of binary views. Raises ValueError if that is less than 0. Waits
/// for nothing: the host has to be able to read the memory.
int64_t read_data_size(const DeviceArray& array, int64_t i);

inline bool is_inline(const ArrowBinaryViewRef& view) noexcept {
  return view.size <= NANOARROW_BINARY_VIEW_INLINE_SIZE;
}

/// The bytes of row `i` of a fixed-width or any binary layout.
std::string_view read_bytes(const DeviceArray& array, int64_t i);

/// Index of the child that has row `i` of a union. Raises ValueError for an unknown type id.
int64_t read_union_child(const DeviceArray& array, int64_t i);

/// Row index in that child, of `child_length` rows, of row `i` of a dense union. Raises ValueError
/// beyond them.
int64_t read_union_row(const DeviceArray& array, int64_t i, int64_t child_length);

/// The dictionary index of row `i`, which is not null. Raises ValueError unless it is less than
/// `dictionary_length`.
int64_t read_index(const DeviceArray& array, int64_t i, int64_t dictionary_length);

ARROWDL_END_NAMESPACE
