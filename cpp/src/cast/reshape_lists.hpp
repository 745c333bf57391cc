// Nests values in fixed-size lists, and takes them out of these.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "cast/used_rows.hpp"

ARROWDL_BEGIN_NAMESPACE

/// `length` rows of `to`, none null: `depth` levels of fixed-size lists around `values`.
OwnedArray nest_values(OwnedArray values, const Type& to, std::size_t depth, int64_t length);

/// The values inside `depth` levels of fixed-size lists. Raises Misfit if a list of `used` is null.
DeviceArray flatten_lists(DeviceArray lists, std::size_t depth, UsedRows used);

ARROWDL_END_NAMESPACE
