// Rows of several arrays in any order, as a new array.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl {

/// A row of one of several arrays.
struct RowPlace {
  uint32_t source;
  uint32_t row;
};

/// Places, each of a row that there is.
struct RowPlaces {
  const RowPlace* begin = nullptr;
  int64_t count = 0;
};

/// The rows of `sources` at `places`. The sources, errors and what is shared with them are as of
/// gather_rows.
OwnedArray take_rows(const std::vector<DeviceArray>& sources, RowPlaces places);

}  // namespace arrowdl
