// Looks for null rows, also in dictionaries and runs.
#pragma once

#include <optional>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Whether a row is null: by its validity bit, its dictionary value or the value of its run. Empty
/// if that takes reading memory of a device. Waits for the event of host-readable memory.
/// Raises ValueError for malformed indices and run ends.
std::optional<bool> has_null_rows(const DeviceArray& array);

ARROWDL_END_NAMESPACE
