// Permutes the rows of arrays in their own memory.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The elements of one column of arrays in host memory: of part i from `parts[i]` on.
struct Elements {
  std::vector<uint8_t*> parts;
  int64_t width;  ///< bytes of a row
};

/// The elements of each column of `parts`, arrays of one type in host memory, if `permute_rows` can
/// permute them: numbers and short lists of a fixed size without nulls, of which no two share
/// memory. Otherwise nothing. Reads no memory.
std::vector<Elements> find_elements(const std::vector<DeviceArray>& parts);

/// Replaces row i of all `parts`, numbered through, by what row `order[i]` was. `columns` are their
/// elements. This memory must have no other user. Raises MemoryError, before anything has changed.
void permute_rows(const std::vector<DeviceArray>& parts, const std::vector<Elements>& columns,
                  const std::vector<uint32_t>& order);

ARROWDL_END_NAMESPACE
