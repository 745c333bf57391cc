// Rows that a stream has not copied yet.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "compute/row_indices.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Rows of arrays in host memory that is ready, in an order of their own: `count` of `order`, from
/// `start` on.
struct PermutedRows {
  std::vector<DeviceArray> arrays;
  std::vector<RowIndex> order;
  int64_t start = 0;
  int64_t count = 0;

  const RowIndex& operator[](int64_t row) const noexcept {
    return order[static_cast<std::size_t>(start + row)];
  }
};

ARROWDL_END_NAMESPACE
