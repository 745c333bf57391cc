// Gathers the rows of binary and strings with offsets.
#include "compute/gather_binary.hpp"

#include "arrowdl/error.hpp"
#include "compute/gather_elements.hpp"
#include "compute/gather_offsets.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename Offset>
void gather_offset_binary(const Selection& selection, ArrayParts* parts) {
  const std::vector<int64_t> limits(selection.sources.size(), kNoLimit);
  std::vector<RowRange> bytes;
  parts->buffers.push_back(gather_offsets<Offset>(selection, limits, &bytes));
  parts->buffers.push_back(gather_bytes(selection.sources, bytes));
}

}  // namespace

void gather_binary(const Selection& selection, ArrayParts* parts) {
  visit_offset(selection.type(),
               [&](auto zero) { gather_offset_binary<decltype(zero)>(selection, parts); });
}

Buffer gather_bytes(const std::vector<DeviceArray>& sources, const std::vector<RowRange>& ranges) {
  std::vector<const uint8_t*> first;
  first.reserve(sources.size());
  for (const DeviceArray& source : sources) first.push_back(source.buffer_as<uint8_t>(2));
  for (const RowRange& range : ranges) {
    if (first[range.source] == nullptr) {
      raise_value_error("malformed ", to_string(sources[range.source].type()),
                        " array: its data is NULL where ", range.rows.length, " bytes should be");
    }
  }
  return gather_elements(first, ranges, count_rows(ranges), 1);
}

ARROWDL_END_NAMESPACE
