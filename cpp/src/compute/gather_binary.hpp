// Gathers the rows of binary and strings with offsets.
#pragma once

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the offsets and the bytes to the buffers of `parts`. Raises ValueError for malformed
/// arrays, BufferError if the offsets cannot count the bytes.
void gather_binary(const Selection& selection, ArrayParts* parts);

/// The bytes of `ranges` of the data buffers of `sources`. Raises ValueError for a missing one.
Buffer gather_bytes(const std::vector<DeviceArray>& sources, const std::vector<RowRange>& ranges);

ARROWDL_END_NAMESPACE
