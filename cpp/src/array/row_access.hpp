// Rows of one array: where their values lie. Offsets, sizes and views are what a producer wrote,
// so each is checked against the memory that it points into before anything follows it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "arrowdl/device_array.hpp"
#include "util/bit_util.hpp"

namespace arrowdl {

/// Rows `start` to `end()` of some array.
struct Range {
  int64_t start = 0;
  int64_t length = 0;

  int64_t end() const noexcept { return start + length; }
};

/// A buffer's elements, the first row of the window first. Arrow recommends alignment without
/// promising it, hence the copy on each read (which costs nothing where they are aligned).
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

/// A limit for offsets into memory whose size nobody tells: the bytes of binary and string.
constexpr int64_t kNoLimit = INT64_MAX;

/// What the offsets of `rows` enclose. Raises ValueError unless they ascend within [0, limit].
/// `rows` is not empty.
template <typename Offset>
Range read_offsets(const DeviceArray& array, Range rows, int64_t limit);

extern template Range read_offsets<int32_t>(const DeviceArray&, Range, int64_t);
extern template Range read_offsets<int64_t>(const DeviceArray&, Range, int64_t);

/// The child rows of row `i` of any list layout with `child_length` rows in its child; none for a
/// null row of a list view, whose offset and size mean nothing.
Range read_list(const DeviceArray& array, int64_t i, int64_t child_length);

/// Row `i` of a binary view, checked to lie within the variadic buffers; all zero for a null row.
/// Whatever is_inline() has its bytes where prefix, buffer_index and offset would be.
ArrowBinaryViewRef read_view(const DeviceArray& array, int64_t i);

inline bool is_inline(const ArrowBinaryViewRef& view) noexcept {
  return view.size <= NANOARROW_BINARY_VIEW_INLINE_SIZE;
}

/// The bytes of row `i` of a fixed-width or any binary layout.
std::string_view read_bytes(const DeviceArray& array, int64_t i);

/// Index of the child that union row `i` is in.
int64_t read_union_child(const DeviceArray& array, int64_t i);

/// Where in that child, of `child_length` rows, the row of a dense union lies.
int64_t read_union_row(const DeviceArray& array, int64_t i, int64_t child_length);

/// The value of dictionary index `i`, which is not null, within `dictionary_length`.
int64_t read_index(const DeviceArray& array, int64_t i, int64_t dictionary_length);

}  // namespace arrowdl
