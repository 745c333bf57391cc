// Casts arrays to another type of the same data.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows of `array` as rows of `to`. find_fit has found that they fit; above Fit::kShared
/// `array` is in host memory and ready. `is_whole` says that all rows count: none is under a null,
/// or outside of what a list refers to. Raises Misfit for values that do not fit, ValueError for
/// nulls if `to` is not nullable.
OwnedArray cast_rows(const DeviceArray& array, const Type& to, bool is_whole = true);

ARROWDL_END_NAMESPACE
