// Casts arrays to another type of the same data.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "cast/used_rows.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows of `array` as rows of `to`. find_fit has found that they fit; above Fit::kShared
/// `array` is in host memory and ready. Raises Misfit or ValueError for values of `used` that do
/// not fit, ValueError for nulls if `to` is not nullable.
OwnedArray cast_rows(const DeviceArray& array, const Type& to, const UsedRows& used = {});

ARROWDL_END_NAMESPACE
