// Makes the offsets of lists, binary and strings: of ranges of rows, or of rows in any order.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// New offsets of `selection`, the first one 0. `*values` become the ranges of the sources' values
/// that they enclose. `limits[i]` is the number of values of source i. Raises ValueError for
/// malformed offsets, BufferError if an Offset cannot count the values.
template <typename Offset>
Buffer gather_offsets(const Selection& selection, const std::vector<int64_t>& limits,
                      std::vector<RowRange>* values);

extern template Buffer gather_offsets<int32_t>(const Selection&, const std::vector<int64_t>&,
                                               std::vector<RowRange>*);
extern template Buffer gather_offsets<int64_t>(const Selection&, const std::vector<int64_t>&,
                                               std::vector<RowRange>*);

/// Raises BufferError if offsets of type Offset cannot count `count` values.
template <typename Offset>
void require_offset_fits(const Type& type, int64_t count);

extern template void require_offset_fits<int32_t>(const Type&, int64_t);
extern template void require_offset_fits<int64_t>(const Type&, int64_t);

/// The values of the rows that are taken.
struct TakenValues {
  RowIndices indices;
  std::vector<Range> rows;    ///< of each row, in its source
  std::vector<int64_t> ends;  ///< of each source: where the last value ends that some row has
  int64_t count = 0;          ///< of all rows
};

/// New offsets of the rows `indices`, the first one 0. `*values` become their values. `limits[i]`
/// is the number of values of source i. Raises ValueError for malformed offsets, BufferError if the
/// offsets cannot count the values.
Buffer take_offsets(const std::vector<DeviceArray>& sources, RowIndices indices,
                    const std::vector<int64_t>& limits, TakenValues* values);

/// The same values as ranges, without empty ones.
std::vector<RowRange> to_ranges(const TakenValues& values);

ARROWDL_END_NAMESPACE
