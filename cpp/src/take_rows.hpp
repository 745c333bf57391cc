// Rows of one array in any order, as a new array.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl {

/// Row numbers, each below the length of the array that they are taken from.
struct RowNumbers {
  const uint32_t* begin = nullptr;
  int64_t count = 0;
};

/// Those rows of `source`, which lies in host memory (require_host_readable). Dictionaries and the
/// data of views are shared with it. Errors as of gather_rows.
OwnedArray take_rows(const DeviceArray& source, const RowNumbers& rows);

}  // namespace arrowdl
