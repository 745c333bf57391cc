// The facts of each layout, and families of layouts.
#pragma once

#include <cstdint>

#include "arrowdl/schema.hpp"
#include "util/bit_util.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The content of one buffer of an array, which determines its size.
enum class BufferKind : uint8_t {
  kAbsent,    ///< the layout has no such buffer
  kValidity,  ///< 1 bit per row; may be NULL
  kBits,      ///< 1 bit per row
  kElements,  ///< `width` bytes per row
  kOffsets,   ///< `width` bytes per row, and `width` bytes more
  kData,      ///< bytes whose number is in other buffers; may be NULL
};

struct BufferRow {
  BufferKind kind = BufferKind::kAbsent;
  int8_t width = 0;  ///< bytes, for kElements and kOffsets; 0: `Type::byte_width`
};

constexpr int8_t kAnyChildren = -1;

/// One row of the layout table.
struct LayoutRow {
  Layout layout;
  const char* name;      ///< in error messages and `to_string`
  int8_t buffer_count;   ///< the smallest number, if `is_variadic`
  BufferRow buffers[3];  ///< in Arrow's order
  int8_t children;       ///< their number, or kAnyChildren
  bool is_variadic;      ///< whether any number of data buffers precede the last buffer

  constexpr bool has_validity() const noexcept { return buffers[0].kind == BufferKind::kValidity; }
  constexpr bool has_offsets() const noexcept { return buffers[1].kind == BufferKind::kOffsets; }
};

/// By the number of the layout.
/// Source: Arrow "Columnar Format", Buffer listing for each layout.
constexpr LayoutRow kLayouts[] = {
    {Layout::kNull, "null", 0, {}, 0, false},
    {Layout::kBoolean, "bool", 2, {{BufferKind::kValidity}, {BufferKind::kBits}}, 0, false},
    {Layout::kFixedWidth,
     "fixed_width",
     2,
     {{BufferKind::kValidity}, {BufferKind::kElements}},
     0,
     false},
    {Layout::kBinary,
     "binary",
     3,
     {{BufferKind::kValidity}, {BufferKind::kOffsets, 4}, {BufferKind::kData}},
     0,
     false},
    {Layout::kLargeBinary,
     "large_binary",
     3,
     {{BufferKind::kValidity}, {BufferKind::kOffsets, 8}, {BufferKind::kData}},
     0,
     false},
    {Layout::kBinaryView,
     "binary_view",
     3,
     {{BufferKind::kValidity}, {BufferKind::kElements, 16}, {BufferKind::kData}},
     0,
     true},
    {Layout::kList, "list", 2, {{BufferKind::kValidity}, {BufferKind::kOffsets, 4}}, 1, false},
    {Layout::kLargeList,
     "large_list",
     2,
     {{BufferKind::kValidity}, {BufferKind::kOffsets, 8}},
     1,
     false},
    {Layout::kListView,
     "list_view",
     3,
     {{BufferKind::kValidity}, {BufferKind::kElements, 4}, {BufferKind::kElements, 4}},
     1,
     false},
    {Layout::kLargeListView,
     "large_list_view",
     3,
     {{BufferKind::kValidity}, {BufferKind::kElements, 8}, {BufferKind::kElements, 8}},
     1,
     false},
    {Layout::kFixedSizeList, "fixed_size_list", 1, {{BufferKind::kValidity}}, 1, false},
    {Layout::kStruct, "struct", 1, {{BufferKind::kValidity}}, kAnyChildren, false},
    {Layout::kSparseUnion, "sparse_union", 1, {{BufferKind::kElements, 1}}, kAnyChildren, false},
    {Layout::kDenseUnion,
     "dense_union",
     2,
     {{BufferKind::kElements, 1}, {BufferKind::kElements, 4}},
     kAnyChildren,
     false},
    {Layout::kRunEndEncoded, "run_end_encoded", 0, {}, 2, false},
};

constexpr bool every_layout_has_its_row() noexcept {
  std::size_t i = 0;
  for (const LayoutRow& row : kLayouts) {
    int8_t count = 0;
    for (const BufferRow& buffer : row.buffers) {
      count = static_cast<int8_t>(count + (buffer.kind == BufferKind::kAbsent ? 0 : 1));
    }
    if (static_cast<std::size_t>(row.layout) != i++ || count != row.buffer_count) return false;
  }
  return i == static_cast<std::size_t>(Layout::kRunEndEncoded) + 1;
}
static_assert(every_layout_has_its_row(), "one row per Layout, in its order, all buffers counted");

constexpr const LayoutRow& layout_row(Layout layout) noexcept {
  return kLayouts[static_cast<std::size_t>(layout)];
}

/// Buffer `i`, at least 0, of an array of `type`.
constexpr BufferRow buffer_row(const Type& type, int64_t i) noexcept {
  const LayoutRow& row = layout_row(type.layout);
  if (i >= 3) return {row.is_variadic ? BufferKind::kData : BufferKind::kAbsent};
  return row.buffers[i];
}

/// Bytes per row of buffer `i`; 0 for bits and data.
constexpr int64_t element_width(const Type& type, int64_t i) noexcept {
  const BufferRow row = buffer_row(type, i);
  if (row.kind != BufferKind::kElements && row.kind != BufferKind::kOffsets) return 0;
  return row.width == 0 ? type.byte_width : row.width;
}

/// Calls `visit` with a zero of the type of the offsets of `type`, which is binary, a list or a
/// list view.
template <typename Visit>
auto visit_offset(const Type& type, const Visit& visit) {
  return element_width(type, 1) == sizeof(int64_t) ? visit(int64_t{}) : visit(int32_t{});
}

/// The offset in bytes of row `row` in buffer `i`; 0 for data. For bits `row` is a multiple of 8.
constexpr int64_t byte_offset(const Type& type, int64_t i, int64_t row) noexcept {
  const BufferKind kind = buffer_row(type, i).kind;
  const bool is_bits = kind == BufferKind::kValidity || kind == BufferKind::kBits;
  return is_bits ? row / 8 : row * element_width(type, i);
}

/// Sets `*size` to the bytes that `rows` rows take in buffer `i`; 0 for data, and for the offsets
/// of no rows, which may be missing. False if that overflows.
inline bool checked_buffer_size(const Type& type, int64_t i, int64_t rows, int64_t* size) noexcept {
  switch (buffer_row(type, i).kind) {
    case BufferKind::kValidity:
    case BufferKind::kBits:
      *size = bitmap_size(rows);
      return true;
    case BufferKind::kElements:
      return checked_multiply(rows, element_width(type, i), size);
    case BufferKind::kOffsets:
      *size = 0;
      return rows == 0 ||
             (checked_add(rows, 1, &rows) && checked_multiply(rows, element_width(type, i), size));
    case BufferKind::kAbsent:
    case BufferKind::kData:
      break;
  }
  *size = 0;
  return true;
}

/// The same for rows of an array that `validate_array` has checked: nothing overflows.
inline int64_t buffer_size(const Type& type, int64_t i, int64_t rows) noexcept {
  int64_t size = 0;
  static_cast<void>(checked_buffer_size(type, i, rows, &size));
  return size;
}

inline bool is_list(const Type& type) {
  switch (type.layout) {
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
    case Layout::kFixedSizeList:
      return true;
    default:
      return false;
  }
}

inline bool is_union(const Type& type) {
  return type.layout == Layout::kSparseUnion || type.layout == Layout::kDenseUnion;
}

inline bool is_nested(const Type& type) {
  return is_list(type) || is_union(type) || type.layout == Layout::kStruct;
}

/// Bytes and strings. Bytes that an extension reads as a number are not among them.
inline bool is_binary(const Type& type) {
  return type.layout == Layout::kBinary || type.layout == Layout::kLargeBinary ||
         type.layout == Layout::kBinaryView || type.is_fixed_size_binary;
}

ARROWDL_END_NAMESPACE
