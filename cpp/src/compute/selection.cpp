// Rows of several arrays: single ones, ranges, and those that a gather takes; equal memory.
#include "compute/selection.hpp"

#include <algorithm>

#include "arrowdl/error.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE

void append_range(std::vector<RowRange>* ranges, std::size_t source, Range rows) {
  if (rows.length == 0) return;
  if (!ranges->empty()) {
    RowRange& last = ranges->back();
    if (last.source == source && last.rows.end() == rows.start) {
      last.rows.length += rows.length;
      return;
    }
  }
  ranges->push_back(RowRange{source, rows});
}

int64_t add_rows(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!checked_add(a, b, &sum)) {
    raise_buffer_error(a, " and ", b, " rows are more than the 2^63 - 1 of an Arrow array");
  }
  return sum;
}

int64_t count_rows(const std::vector<RowRange>& ranges) {
  int64_t count = 0;
  for (const RowRange& range : ranges) count = add_rows(count, range.rows.length);
  return count;
}

std::vector<DeviceArray> select_child(const std::vector<DeviceArray>& sources, int64_t i) {
  std::vector<DeviceArray> children;
  children.reserve(sources.size());
  for (const DeviceArray& source : sources) children.push_back(source.child(i));
  return children;
}

std::vector<int64_t> count_each(const std::vector<DeviceArray>& arrays) {
  std::vector<int64_t> counts;
  counts.reserve(arrays.size());
  for (const DeviceArray& array : arrays) counts.push_back(array.length());
  return counts;
}

bool has_bitmap(const std::vector<DeviceArray>& sources) {
  return std::any_of(sources.begin(), sources.end(),
                     [](const DeviceArray& source) { return source.validity() != nullptr; });
}

bool has_fixed_rows(const std::vector<DeviceArray>& sources, int64_t most_bytes, bool only_elements,
                    int64_t run) {
  const Type& type = sources.front().type();
  if (has_bitmap(sources) && (only_elements || run > 1)) return false;
  if (type.dictionary != nullptr && only_elements) return false;
  const auto has_fixed_child = [&](int64_t i, int64_t size) {
    return has_fixed_rows(select_child(sources, i), most_bytes, only_elements, run * size);
  };
  switch (type.layout) {
    case Layout::kBoolean:
      return run == 1 && !only_elements;
    case Layout::kFixedWidth:
      return run * type.byte_width <= most_bytes;
    case Layout::kFixedSizeList:
      return type.list_size > 0 && type.list_size <= most_bytes / run &&
             has_fixed_child(0, type.list_size);
    case Layout::kStruct:
      for (std::size_t i = 0; i < type.children.size(); ++i) {
        if (!has_fixed_child(static_cast<int64_t>(i), 1)) return false;
      }
      return true;
    default:
      return false;
  }
}

namespace {

bool have_same_dictionaries(const DeviceArray& a, const DeviceArray& b) {
  if (a.type().dictionary != nullptr && !is_same_memory(a.dictionary(), b.dictionary())) {
    return false;
  }
  const auto child_count = static_cast<int64_t>(a.type().children.size());
  for (int64_t i = 0; i < child_count; ++i) {
    if (!have_same_dictionaries(a.child(i), b.child(i))) return false;
  }
  return true;
}

}  // namespace

bool is_same_memory(const DeviceArray& a, const DeviceArray& b) {
  if (a.length() != b.length() || a.offset() != b.offset() ||
      a.buffer_count() != b.buffer_count()) {
    return false;
  }
  for (int64_t i = 0; i < a.buffer_count(); ++i) {
    if (a.buffer(i) != b.buffer(i)) return false;
  }
  if (a.type().dictionary != nullptr && !is_same_memory(a.dictionary(), b.dictionary())) {
    return false;
  }
  const auto child_count = static_cast<int64_t>(a.type().children.size());
  for (int64_t i = 0; i < child_count; ++i) {
    if (!is_same_memory(a.child(i), b.child(i))) return false;
  }
  return true;
}

bool share_dictionaries(const std::vector<DeviceArray>& arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [&](const DeviceArray& array) {
    return have_same_dictionaries(arrays.front(), array);
  });
}

ARROWDL_END_NAMESPACE
