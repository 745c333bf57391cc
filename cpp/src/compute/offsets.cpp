// Makes the offsets of lists, binary and strings.
#include "compute/offsets.hpp"

#include <algorithm>
#include <limits>

#include "arrowdl/error.hpp"
#include "compute/allocate_elements.hpp"
#include "schema/layout.hpp"
#include "util/copy_bytes.hpp"
#include "util/overflow.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

const char* advise_on_offsets(const Type& type) {
  switch (type.layout) {
    case Layout::kBinary:
      return type.is_utf8 ? "cast to large_string first" : "cast to large_binary first";
    case Layout::kList:
      return type.is_map ? "take fewer rows at a time" : "cast to large_list first";
    case Layout::kListView:
      return "cast to large_list_view first";
    default:
      return "take fewer rows at a time";
  }
}

}  // namespace

template <typename Offset>
void require_offset_fits(const Type& type, int64_t count) {
  if (count > std::numeric_limits<Offset>::max()) {
    raise_buffer_error("the rows hold ", count, " values together, more than the int",
                       sizeof(Offset) * 8, " offsets of ", to_string(type),
                       " can count: ", advise_on_offsets(type));
  }
}

template void require_offset_fits<int32_t>(const Type&, int64_t);
template void require_offset_fits<int64_t>(const Type&, int64_t);

template <typename Offset>
Buffer gather_offsets(const Selection& selection, const std::vector<int64_t>& limits,
                      std::vector<RowRange>* values) {
  Offset* target = nullptr;
  Buffer buffer = allocate_elements(add_rows(selection.length, 1), &target);
  reserve(values, static_cast<int64_t>(selection.ranges.size()));
  int64_t end = 0;
  *target++ = 0;
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    const Range enclosed = read_offsets<Offset>(source, range.rows, limits[range.source]);
    append_range(values, range.source, enclosed);
    const int64_t shift = end - enclosed.start;
    end = add_rows(end, enclosed.length);
    require_offset_fits<Offset>(selection.type(), end);
    const ElementReader<Offset> offsets(source, 1);
    for (int64_t i = range.rows.start + 1; i <= range.rows.end(); ++i) {
      *target++ = static_cast<Offset>(offsets[i] + shift);
    }
  }
  return buffer;
}

template Buffer gather_offsets<int32_t>(const Selection&, const std::vector<int64_t>&,
                                        std::vector<RowRange>*);
template Buffer gather_offsets<int64_t>(const Selection&, const std::vector<int64_t>&,
                                        std::vector<RowRange>*);

namespace {

/// How many rows ahead to prefetch: processors cannot predict offsets in random order.
constexpr int64_t kRowsAhead = 16;

template <typename Offset>
Buffer take_offsets_of(const std::vector<DeviceArray>& sources, RowIndices indices,
                       const std::vector<int64_t>& limits, TakenValues* values) {
  std::vector<ElementReader<Offset>> readers;
  readers.reserve(sources.size());
  for (const DeviceArray& source : sources) readers.emplace_back(source, 1);
  Offset* target = nullptr;
  Buffer offsets = allocate_elements(indices.count + 1, &target);
  values->indices = indices;
  values->ends.assign(sources.size(), 0);
  reserve(&values->rows, indices.count);
  values->rows.resize(static_cast<std::size_t>(indices.count));
  Range* rows = values->rows.data();
  int64_t end = 0;
  *target++ = 0;
  for (int64_t i = 0; i < indices.count; ++i) {
    const auto [source, row] = indices.begin[i];
    if (i + kRowsAhead < indices.count) {
      const RowIndex ahead = indices.begin[i + kRowsAhead];
      prefetch_memory(readers[ahead.source].address(ahead.row), 2 * sizeof(Offset));
    }
    const Offset start = readers[source][row];
    const Offset stop = readers[source][int64_t{row} + 1];
    if (start < 0 || stop < start || stop > limits[source]) {
      read_offsets<Offset>(sources[source], Range{row, 1}, limits[source]);  // raises
    }
    const int64_t length = int64_t{stop} - start;
    rows[i] = Range{start, length};
    int64_t& last = values->ends[source];
    last = std::max(last, length > 0 ? int64_t{stop} : 0);
    int64_t sum = 0;
    if (!checked_add(end, length, &sum)) add_rows(end, length);  // raises
    end = sum;
    *target++ = static_cast<Offset>(end);
  }
  require_offset_fits<Offset>(sources.front().type(), end);
  values->count = end;
  return offsets;
}

}  // namespace

Buffer take_offsets(const std::vector<DeviceArray>& sources, RowIndices indices,
                    const std::vector<int64_t>& limits, TakenValues* values) {
  return visit_offset(sources.front().type(), [&](auto zero) {
    return take_offsets_of<decltype(zero)>(sources, indices, limits, values);
  });
}

std::vector<RowRange> to_ranges(const TakenValues& values) {
  std::vector<RowRange> ranges;
  reserve(&ranges, values.indices.count);
  for (int64_t i = 0; i < values.indices.count; ++i) {
    append_range(&ranges, values.indices.begin[i].source, values.rows[static_cast<std::size_t>(i)]);
  }
  return ranges;
}

ARROWDL_END_NAMESPACE
