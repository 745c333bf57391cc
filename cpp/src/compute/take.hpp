// Takes rows of several arrays, in any order, into a new array.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl {

/// A row of one of several arrays.
struct RowIndex {
  uint32_t source;
  uint32_t row;
};

/// Borrowed row indices, each within its array.
struct RowIndices {
  const RowIndex* begin = nullptr;
  int64_t count = 0;
};

/// The rows of `sources` at `indices`, in that order. Requirements, errors and shared buffers are
/// those of gather.
OwnedArray take(const std::vector<DeviceArray>& sources, RowIndices indices);

}  // namespace arrowdl
