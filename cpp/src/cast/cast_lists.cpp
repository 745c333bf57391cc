// Casts the rows of lists to lists of another kind.
#include "cast/cast_lists.hpp"

#include <algorithm>

#include "array/row_access.hpp"
#include "cast/make_nulls.hpp"
#include "cast/value_offsets.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/gather.hpp"
#include "schema/copy_schema.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

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

}  // namespace

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

ARROWDL_END_NAMESPACE
