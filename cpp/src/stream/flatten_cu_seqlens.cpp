// Joins the offsets of the sequences of several blocks.
#include <limits>

#include "array/host_access.hpp"
#include "array/row_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/pack.hpp"
#include "compute/allocate_elements.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

void require_int32_lists(const Type& type) {
  const bool is_list = type.layout == Layout::kList || type.layout == Layout::kLargeList ||
                       type.layout == Layout::kListView || type.layout == Layout::kLargeListView;
  if (is_list && !type.is_map && type.children[0].dtype == find_dtype("int32")) return;
  raise_type_error("cu_seqlens are lists of int32, as pack() makes them, and not ",
                   to_string(type));
}

/// The last offset of row `row`. Raises ValueError unless its offsets ascend from 0.
int32_t check_offsets(const ElementReader<int32_t>& offsets, Range list, int64_t row) {
  bool is_right = list.length > 0 && offsets[list.start] == 0;
  for (int64_t i = list.start + 1; i < list.end(); ++i) is_right &= offsets[i - 1] <= offsets[i];
  if (is_right) return offsets[list.end() - 1];
  raise_value_error("row ", row,
                    " of cu_seqlens does not ascend from 0: pass the column that "
                    "pack() made");
}

}  // namespace

DeviceArray flatten_cu_seqlens(const DeviceArray& column) {
  require_int32_lists(column.type());
  require_host_readable(column, "join cu_seqlens");
  const DeviceArray items = column.child(0);
  if (column.has_nulls() || items.has_nulls()) {
    raise_value_error("cu_seqlens must not be null: pass the column that pack() made");
  }
  int64_t count = 1;
  for (int64_t row = 0; row < column.length(); ++row) {
    count += read_list(column, row, items.length()).length;
  }
  int32_t* first = nullptr;
  Buffer joined = allocate_elements(count, &first);
  int32_t* target = first;
  *target++ = 0;
  int64_t start = 0;  // of the block
  const ElementReader<int32_t> offsets(items, 1);
  for (int64_t row = 0; row < column.length(); ++row) {
    const Range list = read_list(column, row, items.length());
    const int64_t end = start + check_offsets(offsets, list, row);
    if (end > std::numeric_limits<int32_t>::max()) {
      raise_buffer_error("the blocks up to row ", row, " have ", end,
                         " values, more than int32 offsets can count: take fewer blocks");
    }
    for (int64_t i = list.start + 1; i < list.end(); ++i) {
      *target++ = static_cast<int32_t>(start) + offsets[i];
    }
    start = end;
  }
  return DeviceArray::make_primitive(*find_dtype("int32"), target - first, std::move(joined),
                                     Device{});
}

ARROWDL_END_NAMESPACE
