// Takes the offsets of lists, binary and strings, in any order.
#include "compute/take_offsets.hpp"

#include <cstring>

#include "compute/allocate_elements.hpp"
#include "compute/gather_offsets.hpp"
#include "schema/layout.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename Offset>
Buffer take_offsets_of(const std::vector<DeviceArray>& sources, RowIndices indices,
                       const std::vector<int64_t>& limits, std::vector<RowRange>* values) {
  std::vector<ElementReader<Offset>> readers;
  readers.reserve(sources.size());
  for (const DeviceArray& source : sources) readers.emplace_back(source, 1);
  Offset* target = nullptr;
  Buffer offsets = allocate_elements(indices.count + 1, &target);
  reserve(values, indices.count);
  int64_t end = 0;
  *target++ = 0;
  for (int64_t i = 0; i < indices.count; ++i) {
    const auto [source, row] = indices.begin[i];
    const Offset start = readers[source][row];
    const Offset stop = readers[source][int64_t{row} + 1];
    if (start < 0 || stop < start || stop > limits[source]) {
      read_offsets<Offset>(sources[source], Range{row, 1}, limits[source]);  // raises
    }
    const int64_t length = int64_t{stop} - start;
    if (length > 0) values->push_back({source, Range{start, length}});
    end = add_rows(end, length);
    *target++ = static_cast<Offset>(end);
  }
  require_offset_fits<Offset>(sources.front().type(), end);
  return offsets;
}

}  // namespace

Buffer take_offsets(const std::vector<DeviceArray>& sources, RowIndices indices,
                    const std::vector<int64_t>& limits, std::vector<RowRange>* values) {
  return visit_offset(sources.front().type(), [&](auto zero) {
    return take_offsets_of<decltype(zero)>(sources, indices, limits, values);
  });
}

ARROWDL_END_NAMESPACE
