// Gathers the offsets of lists and list views.
#include <algorithm>

#include "compute/allocate_elements.hpp"
#include "compute/gather_layouts.hpp"
#include "compute/offsets.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename Offset>
ChildRows gather_offset_lists(const Selection& selection, ArrayParts* parts) {
  std::vector<DeviceArray> children = select_child(selection.sources, 0);
  std::vector<int64_t> limits;
  limits.reserve(children.size());
  for (const DeviceArray& child : children) limits.push_back(child.length());
  std::vector<RowRange> values;
  parts->buffers.push_back(gather_offsets<Offset>(selection, limits, &values));
  return {std::move(children), std::move(values)};
}

/// The values from the first to the last that `rows` refer to.
Range find_span(const DeviceArray& source, Range rows, int64_t child_length) {
  int64_t start = child_length;
  int64_t end = 0;
  for (int64_t i = rows.start; i < rows.end(); ++i) {
    const Range values = read_list(source, i, child_length);
    if (values.length == 0) continue;
    start = std::min(start, values.start);
    end = std::max(end, values.end());
  }
  return end == 0 ? Range{} : Range{start, end - start};
}

/// Moves the span that a range refers to as one, so that gaps and overlaps stay.
template <typename Offset>
ChildRows gather_list_views(const Selection& selection, ArrayParts* parts) {
  std::vector<DeviceArray> children = select_child(selection.sources, 0);
  Offset* offsets = nullptr;
  Offset* sizes = nullptr;
  parts->buffers.push_back(allocate_elements(selection.length, &offsets));
  parts->buffers.push_back(allocate_elements(selection.length, &sizes));
  std::vector<RowRange> values;
  int64_t count = 0;
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    const int64_t child_length = children[range.source].length();
    const Range span = find_span(source, range.rows, child_length);
    const int64_t shift = count - span.start;
    append_range(&values, range.source, span);
    count = add_rows(count, span.length);
    require_offset_fits<Offset>(selection.type(), count);
    for (int64_t i = range.rows.start; i < range.rows.end(); ++i) {
      const Range list = read_list(source, i, child_length);
      *offsets++ = static_cast<Offset>(list.length == 0 ? 0 : list.start + shift);
      *sizes++ = static_cast<Offset>(list.length);
    }
  }
  return {std::move(children), std::move(values)};
}

}  // namespace

ChildRows gather_lists(const Selection& selection, ArrayParts* parts) {
  return visit_offset(selection.type(), [&](auto zero) {
    using Offset = decltype(zero);
    return layout_row(selection.type().layout).has_offsets()
               ? gather_offset_lists<Offset>(selection, parts)
               : gather_list_views<Offset>(selection, parts);
  });
}

ARROWDL_END_NAMESPACE
