// Takes rows of several arrays, in any order, into a new array.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows of `sources` at `indices`, in that order. Requirements, errors and shared buffers are
/// those of gather.
OwnedArray take(const std::vector<DeviceArray>& sources, RowIndices indices);

/// The same of several columns, each of as many sources.
std::vector<OwnedArray> take_columns(const std::vector<std::vector<DeviceArray>>& columns,
                                     RowIndices indices);

/// Whether `take_numbered` takes rows of `sources`, arrays of one type in host memory: numbers,
/// bits, structs of these, and lists of a fixed size without nulls in them. Reads no memory.
bool can_take_numbered(const std::vector<DeviceArray>& sources);

/// The rows of `sources` with the numbers `rows`, `count` of them. Reads all rows: faster than
/// `take` for half of them or more. Requires can_take_numbered, and dictionaries that all sources
/// share.
OwnedArray take_numbered(const std::vector<DeviceArray>& sources, const uint32_t* rows,
                         int64_t count);

ARROWDL_END_NAMESPACE
