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

ARROWDL_END_NAMESPACE
