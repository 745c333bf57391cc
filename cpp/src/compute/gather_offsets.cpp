// Gathers the offsets of lists, binary and strings.
#include "compute/gather_offsets.hpp"

#include <limits>

#include "arrowdl/error.hpp"
#include "compute/allocate_elements.hpp"
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

ARROWDL_END_NAMESPACE
