// The rows that a gather takes from several arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "compute/row_range.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Rows to gather. Borrows its arrays and ranges.
struct Selection {
  const std::vector<DeviceArray>& sources;
  const std::vector<RowRange>& ranges;
  int64_t length;  ///< count_rows(ranges)

  const Type& type() const noexcept { return sources.front().type(); }
};

/// Rows to gather one level down: of a child, or of a dictionary.
struct ChildRows {
  std::vector<DeviceArray> sources;
  std::vector<RowRange> ranges;
};

/// Child `i` of each source.
std::vector<DeviceArray> select_child(const std::vector<DeviceArray>& sources, int64_t i);

/// Whether a source has a validity bitmap.
bool has_bitmap(const std::vector<DeviceArray>& sources);

/// Whether rows of up to `most_bytes` can be copied as their elements: numbers, structs of them,
/// and lists of a fixed size without nulls in them. If not `only_elements`, rows may also be bits,
/// null, or indices of dictionaries. Reads no memory. `run` elements of the sources make a row.
bool has_fixed_rows(const std::vector<DeviceArray>& sources, int64_t most_bytes, bool only_elements,
                    int64_t run = 1);

ARROWDL_END_NAMESPACE
