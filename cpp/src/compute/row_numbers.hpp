// Numbers the rows of several arrays through, for the kernels that take rows.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"
#include "compute/row_range.hpp"
#include "compute/take.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The numbers that take_on_device needs for rows of `sources`, which are on one device: int64, on
/// that device. The copy there is asynchronous, and the result has an event for it.
DeviceArray number_rows(const std::vector<DeviceArray>& sources, RowIndices indices);
DeviceArray number_rows(const std::vector<DeviceArray>& sources,
                        const std::vector<RowRange>& ranges);

ARROWDL_END_NAMESPACE
