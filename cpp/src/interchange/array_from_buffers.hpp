// Makes one array of buffers that are arrays themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The buffers of an array, each an array itself.
struct BufferParts {
  int64_t length = 0;
  int64_t offset = 0;
  /// In Arrow's order for the layout. Each is a fixed-width array without nulls; its type does not
  /// matter. An empty DeviceArray stands for an absent buffer.
  std::vector<DeviceArray> buffers;
  DeviceArray dictionary = {};  ///< the values, for `schema`'s indices; or empty
};

/// An array of `schema`, which has no children and no dictionary, over the memory of `parts`. It is
/// ready when all of their events complete. Raises ValueError for buffers that are too short or on
/// several devices, and, where the host can read them, for offsets beyond the data.
DeviceArray array_from_buffers(OwnedSchema schema, BufferParts parts, bool is_ordered = false);

ARROWDL_END_NAMESPACE
