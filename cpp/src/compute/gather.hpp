// Gathers ranges of rows from arrays of one type into a new array.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows of `ranges`, none of them empty, in that order. `sources` are one or more arrays in
/// host memory (require_host_readable) that agree in type. Each buffer is allocated once; data
/// buffers of views and equal dictionaries are shared with the sources. Offsets, views, indices and
/// run ends are checked before they are followed (ValueError). Raises BufferError for what the type
/// cannot hold, such as int32 offsets that overflow.
OwnedArray gather(const std::vector<DeviceArray>& sources, const std::vector<RowRange>& ranges);

ARROWDL_END_NAMESPACE
