#include <cstring>
#include <limits>

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/owned.hpp"
#include "cast/cast.hpp"
#include "compute/gather.hpp"
#include "schema/copy_schema.hpp"

namespace arrowdl {
namespace {

/// Calls `visit` with a zero of the type of the offsets that `type` has.
template <typename Visit>
auto visit_offset(const Type& type, const Visit& visit) {
  switch (type.layout) {
    case Layout::kLargeBinary:
    case Layout::kLargeList:
    case Layout::kLargeListView:
      return visit(int64_t{});
    default:
      return visit(int32_t{});
  }
}

template <typename Offset>
void require_fits(const Type& to, int64_t offset) {
  if (offset <= std::numeric_limits<Offset>::max()) return;
  raise_misfit("the rows hold ", offset, " values together, more than the offsets of ",
               to_string(to), " can count");
}

/// What the rows of `own`, of `Own`, take, as offsets of another width.
template <typename Offset, typename Own>
Buffer convert_offsets(const DeviceArray& own, const Type& to) {
  const ElementReader<Own> offsets(own, 1);
  const int64_t count = own.length();
  if constexpr (sizeof(Offset) == sizeof(Own)) {
    return Buffer(own.storage(), offsets.address(0), count * int64_t{sizeof(Offset)});
  } else {
    require_fits<Offset>(to, offsets[count - 1]);
    Offset* target = nullptr;
    Buffer converted = allocate_elements(count, &target);
    for (int64_t i = 0; i < count; ++i) target[i] = static_cast<Offset>(offsets[i]);
    return converted;
  }
}

/// Offsets of `length` rows that take `size` values each.
template <typename Offset>
Buffer make_even_offsets(int64_t length, int64_t size, const Type& to) {
  int64_t end = 0;
  if (!checked_multiply(length, size, &end)) end = std::numeric_limits<int64_t>::max();
  require_fits<Offset>(to, end);
  Offset* target = nullptr;
  Buffer offsets = allocate_elements(add_rows(length, 1), &target);
  for (int64_t i = 0; i <= length; ++i) target[i] = static_cast<Offset>(i * size);
  return offsets;
}

/// Rows as values that follow each other, cut at offsets from 0 on.
template <typename Offset>
struct Cut {
  DeviceArray values;
  Buffer offsets;  ///< length + 1
};

template <typename Offset>
Offset read_offset(const Buffer& offsets, int64_t i) {
  Offset offset;
  std::memcpy(&offset, offsets.data() + i * int64_t{sizeof(Offset)}, sizeof(Offset));
  return offset;
}

template <typename Offset>
Cut<Offset> cut_lists(const DeviceArray& array, const Type& to) {
  const Type& from = array.type();
  if (from.layout == Layout::kFixedSizeList) {
    return {array.child(0), make_even_offsets<Offset>(array.length(), from.list_size, to)};
  }
  ListParts parts = split_list(array);
  const bool is_long = parts.offsets.type().byte_width == sizeof(int64_t);
  Buffer offsets = is_long ? convert_offsets<Offset, int64_t>(parts.offsets, to)
                           : convert_offsets<Offset, int32_t>(parts.offsets, to);
  return {std::move(parts.values), std::move(offsets)};
}

// ---------------------------------------------------------------- lists

template <typename Offset>
void append_offsets(const Cut<Offset>& cut, int64_t, ArrayParts* parts) {
  parts->buffers.push_back(cut.offsets);
}

template <typename Offset>
void append_views(const Cut<Offset>& cut, int64_t length, ArrayParts* parts) {
  Offset* sizes = nullptr;
  Buffer buffer = allocate_elements(length, &sizes);
  for (int64_t i = 0; i < length; ++i) {
    sizes[i] = static_cast<Offset>(read_offset<Offset>(cut.offsets, i + 1) -
                                   read_offset<Offset>(cut.offsets, i));
  }
  parts->buffers.push_back(cut.offsets);
  parts->buffers.push_back(std::move(buffer));
}

/// `count` values in the place of a null list: some that there are, whose rows mean nothing.
void append_filler(const DeviceArray& values, int64_t count, std::vector<RowRange>* pieces) {
  for (int64_t left = count; left > 0;) {
    const int64_t taken = std::min(left, values.length());
    pieces->push_back(RowRange{0, Range{0, taken}});
    left -= taken;
  }
}

/// The values of rows that all have `size` of them, the null ones included.
DeviceArray even_out(const DeviceArray& array, const Cut<int64_t>& cut, int64_t size) {
  const RowValidity is_valid(array);
  std::vector<RowRange> pieces;
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t start = read_offset<int64_t>(cut.offsets, i);
    const int64_t length = read_offset<int64_t>(cut.offsets, i + 1) - start;
    if (length == size) {
      append_range(&pieces, 0, Range{start, length});
    } else if (!is_valid[i] && cut.values.length() > 0) {
      append_filler(cut.values, size, &pieces);
    } else {
      raise_misfit("row ", i, " of ", to_string(array.type()), " has ", length,
                   " values, and lists of ", size, " are asked for");
    }
  }
  if (pieces.empty()) return cut.values.slice(0, 0);
  if (pieces.size() == 1) {
    return cut.values.slice(pieces.front().rows.start, pieces.front().rows.length);
  }
  return DeviceArray::import(copy_schema(*cut.values.type().schema),
                             gather_rows({cut.values}, pieces));
}

void cast_to_fixed_size(const DeviceArray& array, const Type& to, bool is_whole,
                        ArrayParts* parts) {
  const Type& item = to.children[0];
  if (array.type().layout == Layout::kFixedSizeList) {
    parts->children.push_back(cast_rows(array.child(0), item, is_whole));
    return;
  }
  const Cut<int64_t> cut = cut_lists<int64_t>(array, to);
  int64_t count = 0;
  if (!checked_multiply(array.length(), to.list_size, &count)) {
    raise_misfit(array.length(), " lists of ", to.list_size, " values are more than Arrow counts");
  }
  const bool is_all_null = cut.values.length() == 0 && parts->null_count == array.length();
  parts->children.push_back(is_all_null
                                ? make_nulls(item, count)
                                : cast_rows(even_out(array, cut, to.list_size), item, is_whole));
}

/// `length` rows of `to`, none null, over `values`: lists in `depth` levels of lists.
OwnedArray nest(const DeviceArray& values, const Type& to, std::size_t depth, int64_t length) {
  if (depth == 0) return cast_rows(values, to, false);
  ArrayParts parts;
  parts.length = length;
  parts.buffers.push_back(Buffer());
  parts.children.push_back(nest(values, to.children[0], depth - 1, length * to.list_size));
  return make_array(std::move(parts));
}

/// The values under `depth` levels of lists that are not null.
DeviceArray flatten(DeviceArray lists, std::size_t depth) {
  for (; depth > 0; --depth) {
    if (lists.has_nulls()) {
      raise_misfit("lists of ", to_string(lists.type()), " are null, and an element of a tensor ",
                   "that has them is not null as a whole");
    }
    lists = lists.child(0);
  }
  return lists;
}

// ---------------------------------------------------------------- binary

/// Bytes cut into rows.
template <typename Offset>
Cut<Offset> cut_binary(const DeviceArray& array, const Type& to) {
  if (!array.type().is_fixed_size_binary) return cut_lists<Offset>(array, to);
  const int64_t width = array.type().byte_width;
  const DeviceArray bytes =
      array.buffer_array(1, *find_dtype("uint8"), (array.offset() + array.length()) * width);
  return {bytes.slice(array.offset() * width, array.length() * width),
          make_even_offsets<Offset>(array.length(), width, to)};
}

Buffer share_bytes(const DeviceArray& values) {
  return Buffer(values.storage(), ElementReader<uint8_t>(values, 1).address(0), values.length());
}

/// The view of `size` bytes at `start` of the only data buffer.
ArrowBinaryView make_view(const uint8_t* bytes, int64_t start, int64_t size) {
  ArrowBinaryView view;
  std::memset(&view, 0, sizeof(view));
  view.inlined.size = static_cast<int32_t>(size);
  if (size <= NANOARROW_BINARY_VIEW_INLINE_SIZE) {
    if (size > 0) std::memcpy(view.inlined.data, bytes + start, static_cast<std::size_t>(size));
    return view;
  }
  std::memcpy(view.ref.prefix, bytes + start, sizeof(view.ref.prefix));
  view.ref.buffer_index = 0;
  view.ref.offset = static_cast<int32_t>(start);
  return view;
}

/// Views whose data all lies in one buffer, which their offsets must reach.
void append_binary_views(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  const Cut<int64_t> cut = cut_binary<int64_t>(array, to);
  require_fits<int32_t>(to, read_offset<int64_t>(cut.offsets, array.length()));
  const Buffer bytes = share_bytes(cut.values);
  ArrowBinaryView* views = nullptr;
  Buffer view_buffer = allocate_elements(array.length(), &views);
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t start = read_offset<int64_t>(cut.offsets, i);
    views[i] = make_view(bytes.data(), start, read_offset<int64_t>(cut.offsets, i + 1) - start);
  }
  int64_t* size = nullptr;
  Buffer sizes = allocate_elements(1, &size);
  *size = bytes.size();
  parts->buffers.insert(parts->buffers.end(), {std::move(view_buffer), bytes, std::move(sizes)});
}

}  // namespace

void cast_list(const DeviceArray& array, const Type& to, bool is_whole, ArrayParts* parts) {
  const bool is_child_whole = is_whole && parts->null_count == 0;
  if (to.layout == Layout::kFixedSizeList) {
    return cast_to_fixed_size(array, to, is_child_whole, parts);
  }
  const bool is_view = to.layout == Layout::kListView || to.layout == Layout::kLargeListView;
  visit_offset(to, [&](auto zero) {
    using Offset = decltype(zero);
    const Cut<Offset> cut = cut_lists<Offset>(array, to);
    const auto append = is_view ? append_views<Offset> : append_offsets<Offset>;
    append(cut, array.length(), parts);
    parts->children.push_back(cast_rows(cut.values, to.children[0], is_child_whole));
  });
}

void reshape_lists(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  const std::size_t inner = find_common_shape(array.type(), to)->size() - 1;
  const DeviceArray values = array.child(0);
  const Type& item = to.children[0];
  const bool is_flat = array.type().extension == Extension::kFixedShapeTensor;
  parts->children.push_back(is_flat ? nest(values, item, inner, array.length() * to.list_size)
                                    : cast_rows(flatten(values, inner), item, false));
}

void cast_binary(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  if (to.layout == Layout::kBinaryView) return append_binary_views(array, to, parts);
  visit_offset(to, [&](auto zero) {
    Cut<decltype(zero)> cut = cut_binary<decltype(zero)>(array, to);
    parts->buffers.push_back(std::move(cut.offsets));
    parts->buffers.push_back(share_bytes(cut.values));
  });
}

}  // namespace arrowdl
