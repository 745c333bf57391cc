// Takes the offsets of lists, binary and strings, in any order.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/row_indices.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

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
