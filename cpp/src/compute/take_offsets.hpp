// Takes the offsets of lists, binary and strings, in any order.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/row_indices.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// New offsets of the rows `indices`, the first one 0. `*values` become the values of each row that
/// has some. `limits[i]` is the number of values of source i. Raises ValueError for malformed
/// offsets, BufferError if the offsets cannot count the values.
Buffer take_offsets(const std::vector<DeviceArray>& sources, RowIndices indices,
                    const std::vector<int64_t>& limits, std::vector<RowRange>* values);

ARROWDL_END_NAMESPACE
