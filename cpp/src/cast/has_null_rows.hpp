// Looks for null rows, also for those that have no validity bit of their own.
#pragma once

#include <optional>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// Whether a row is null: by its validity bit, its dictionary value or the value of its run. Empty
/// if only the memory of a device would tell. Waits for the event of memory that the host reads.
/// Raises ValueError for malformed indices and run ends.
std::optional<bool> has_null_rows(const DeviceArray& array);

}  // namespace arrowdl
