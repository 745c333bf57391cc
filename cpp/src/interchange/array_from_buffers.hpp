// One array made of buffers that are arrays of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// What makes one array out of buffers that are arrays of their own.
struct BufferParts {
  int64_t length = 0;
  int64_t offset = 0;
  /// In Arrow's order for the layout; each a fixed-width array without nulls, whose bytes count and
  /// whose type does not. An empty one is a buffer that is absent.
  std::vector<DeviceArray> buffers;
  DeviceArray dictionary = {};  ///< the values, for `schema`'s indices; or empty
};

/// An array of `schema`, which has no children and no dictionary, that shares the memory of `parts`
/// on whatever device it lies, and comes after all of its events. Raises ValueError for buffers
/// that are too short, lie on several devices, or whose offsets leave the bytes (read where the
/// host can).
DeviceArray array_from_buffers(OwnedSchema schema, BufferParts parts, bool is_ordered = false);

}  // namespace arrowdl
