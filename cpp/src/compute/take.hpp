// Takes rows of several arrays, in any order, into a new array.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "compute/row_indices.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows of `sources` at `indices`, in that order. Requirements, errors and shared buffers are
/// those of gather.
OwnedArray take(const std::vector<DeviceArray>& sources, RowIndices indices);

/// The same of several columns, each of as many sources.
std::vector<OwnedArray> take_columns(const std::vector<std::vector<DeviceArray>>& columns,
                                     RowIndices indices);

ARROWDL_END_NAMESPACE
