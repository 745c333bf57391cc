// Casts lists and binary to other offsets, sizes and depths.
#include <algorithm>
#include <cstring>

#include "array/row_access.hpp"
#include "cast/casts.hpp"
#include "cast/misfit.hpp"
#include "cast/nulls.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/gather.hpp"
#include "schema/layout.hpp"
#include "schema/make_schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The rows of `array` as bytes and offsets.
template <typename Offset>
OffsetRows<Offset> read_bytes_rows(const DeviceArray& array, const Type& to) {
  if (!array.type().is_fixed_size_binary) return read_offset_rows<Offset>(array, to);
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

/// Views into one data buffer, all of which their int32 offsets must reach.
void append_views(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  const OffsetRows<int64_t> rows = read_bytes_rows<int64_t>(array, to);
  require_offset<int32_t>(to, rows[array.length()]);
  const Buffer bytes = share_bytes(rows.values);
  ArrowBinaryView* views = nullptr;
  Buffer view_buffer = allocate_elements(array.length(), &views);
  for (int64_t i = 0; i < array.length(); ++i) {
    views[i] = make_view(bytes.data(), rows[i], rows.length_of(i));
  }
  int64_t* size = nullptr;
  Buffer sizes = allocate_elements(1, &size);
  *size = bytes.size();
  parts->buffers.insert(parts->buffers.end(), {std::move(view_buffer), bytes, std::move(sizes)});
}

template <typename Offset>
Buffer make_sizes(const OffsetRows<Offset>& rows, int64_t length) {
  Offset* sizes = nullptr;
  Buffer buffer = allocate_elements(length, &sizes);
  for (int64_t i = 0; i < length; ++i) sizes[i] = static_cast<Offset>(rows.length_of(i));
  return buffer;
}

/// Appends `count` values for a null list. Any values do, since they are never read.
void append_filler(const DeviceArray& values, int64_t count, std::vector<RowRange>* ranges) {
  for (int64_t left = count; left > 0;) {
    const int64_t taken = std::min(left, values.length());
    ranges->push_back(RowRange{0, Range{0, taken}});
    left -= taken;
  }
}

/// Raises Misfit unless lists that count have `size` values, before memory is allocated. Returns
/// whether one counts.
bool check_lengths(const DeviceArray& array, const OffsetRows<int64_t>& rows, int64_t size,
                   const UsedRows& used) {
  const RowValidity is_valid(array);
  bool has_lists = false;
  for (int64_t i = 0; i < array.length(); ++i) {
    if (!is_valid[i]) continue;
    const int64_t length = rows.length_of(i);
    if (length == size) {
      has_lists = true;
    } else if (used[i]) {
      raise_misfit("row ", i, " of ", to_string(array.type()), " has ", length,
                   " values, and lists of ", size,
                   " are requested: request lists of any size, or those of the array");
    }
  }
  return has_lists;
}

/// The values of lists that are all of `size` values, null ones included.
DeviceArray even_out(const DeviceArray& array, const OffsetRows<int64_t>& rows, int64_t size) {
  std::vector<RowRange> ranges;
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t length = rows.length_of(i);
    if (length == size) {
      append_range(&ranges, 0, Range{rows[i], length});
    } else {
      append_filler(rows.values, size, &ranges);
    }
  }
  if (ranges.empty()) return rows.values.slice(0, 0);
  if (ranges.size() == 1) {
    return rows.values.slice(ranges.front().rows.start, ranges.front().rows.length);
  }
  return DeviceArray::import(copy_schema(*rows.values.type().schema),
                             gather({rows.values}, ranges));
}

std::optional<DeviceArray> cast_to_fixed_size(const DeviceArray& array, const Type& to,
                                              const UsedRows& used, ArrayParts* parts) {
  if (array.type().layout == Layout::kFixedSizeList) return array.child(0);
  const OffsetRows<int64_t> rows = read_offset_rows<int64_t>(array, to);
  int64_t count = 0;
  if (!checked_multiply(array.length(), to.list_size, &count)) {
    raise_misfit(array.length(), " lists of ", to.list_size, " values are more than Arrow counts");
  }
  const bool has_lists = check_lengths(array, rows, to.list_size, used);
  const bool has_few = rows.values.length() < std::max<int64_t>(to.list_size, 1);
  const bool has_filler = rows.values.length() > 0;
  const bool is_filled = has_lists || !has_few || (has_filler && !can_be_null(to.children[0]));
  if (is_filled) return even_out(array, rows, to.list_size);
  parts->children.push_back(make_nulls(to.children[0], count));
  return std::nullopt;
}

/// Raises Misfit if a list of `used` is null.
void check_lists(const DeviceArray& lists, const UsedRows& used) {
  const RowValidity is_valid(lists);
  for (int64_t i = 0; i < lists.length(); ++i) {
    if (is_valid[i] || !used[i]) continue;
    raise_misfit("lists of ", to_string(lists.type()), " are null, and the element of a tensor ",
                 "that contains them is not null as a whole: fill them, or request nested lists");
  }
}

}  // namespace

void cast_binary(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  if (to.layout == Layout::kBinaryView) return append_views(array, to, parts);
  visit_offset(to, [&](auto zero) {
    OffsetRows<decltype(zero)> rows = read_bytes_rows<decltype(zero)>(array, to);
    parts->buffers.push_back(std::move(rows.offsets));
    parts->buffers.push_back(share_bytes(rows.values));
  });
}

std::optional<DeviceArray> cast_lists(const DeviceArray& array, const Type& to,
                                      const UsedRows& used, ArrayParts* parts) {
  if (to.layout == Layout::kFixedSizeList) return cast_to_fixed_size(array, to, used, parts);
  return visit_offset(to, [&](auto zero) {
    OffsetRows<decltype(zero)> rows = read_offset_rows<decltype(zero)>(array, to);
    parts->buffers.push_back(rows.offsets);
    if (to.layout == Layout::kListView || to.layout == Layout::kLargeListView) {
      parts->buffers.push_back(make_sizes(rows, array.length()));
    }
    return std::optional<DeviceArray>(std::move(rows.values));
  });
}

OwnedArray nest_values(OwnedArray values, const Type& to, std::size_t depth, int64_t length) {
  if (depth == 0) return values;
  ArrayParts parts;
  parts.length = length;
  parts.buffers.push_back(Buffer());
  parts.children.push_back(
      nest_values(std::move(values), to.children[0], depth - 1, length * to.list_size));
  return make_array(std::move(parts));
}

DeviceArray flatten_lists(DeviceArray lists, std::size_t depth, UsedRows used) {
  for (; depth > 0; --depth) {
    check_lists(lists, used);
    const int64_t size = lists.type().list_size;
    used = find_used(lists, used, lists.length() * size,
                     [size](int64_t i) { return Range{i * size, size}; });
    lists = lists.child(0);
  }
  return lists;
}

ARROWDL_END_NAMESPACE
