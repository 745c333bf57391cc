#include <algorithm>

#include "compute/gather.hpp"

namespace arrowdl {
namespace {

template <typename Offset>
void gather_offset_lists(const Selection& selection, ArrayParts* parts) {
  const std::vector<DeviceArray> children = select_child(selection.sources, 0);
  std::vector<int64_t> limits;
  limits.reserve(children.size());
  for (const DeviceArray& child : children) limits.push_back(child.length());
  std::vector<RowRange> values;
  parts->buffers.push_back(gather_offsets<Offset>(selection, limits, &values));
  parts->children.push_back(gather_rows(children, values));
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

/// Views keep their order, gaps and overlaps: the span under each piece moves as one.
template <typename Offset>
void gather_list_views(const Selection& selection, ArrayParts* parts) {
  const std::vector<DeviceArray> children = select_child(selection.sources, 0);
  Offset* offsets = nullptr;
  Offset* sizes = nullptr;
  parts->buffers.push_back(allocate_elements(selection.length, &offsets));
  parts->buffers.push_back(allocate_elements(selection.length, &sizes));
  std::vector<RowRange> values;
  int64_t count = 0;
  for (const RowRange& piece : selection.pieces) {
    const DeviceArray& source = selection.sources[piece.source];
    const int64_t child_length = children[piece.source].length();
    const Range span = find_span(source, piece.rows, child_length);
    const int64_t shift = count - span.start;
    append_range(&values, piece.source, span);
    count = add_rows(count, span.length);
    require_offset_fits<Offset>(selection.type(), count);
    for (int64_t i = piece.rows.start; i < piece.rows.end(); ++i) {
      const Range range = read_list(source, i, child_length);
      *offsets++ = static_cast<Offset>(range.length == 0 ? 0 : range.start + shift);
      *sizes++ = static_cast<Offset>(range.length);
    }
  }
  parts->children.push_back(gather_rows(children, values));
}

}  // namespace

void gather_lists(const Selection& selection, ArrayParts* parts) {
  switch (selection.type().layout) {
    case Layout::kList:
      return gather_offset_lists<int32_t>(selection, parts);
    case Layout::kLargeList:
      return gather_offset_lists<int64_t>(selection, parts);
    case Layout::kListView:
      return gather_list_views<int32_t>(selection, parts);
    default:
      return gather_list_views<int64_t>(selection, parts);
  }
}

}  // namespace arrowdl
