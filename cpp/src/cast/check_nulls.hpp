// Checks that fields which are requested as not nullable have no nulls.
#pragma once

#include "arrowdl/device_array.hpp"
#include "cast/used_rows.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises ValueError if `array` has null rows of `used` and `to` is not nullable. Raises Undecided
/// instead if the nulls are not known, or do not count and still are in the bitmap.
void check_nulls(const DeviceArray& array, const Type& to, const UsedRows& used);

/// The same for `array` and all of its children and dictionaries, which `to` takes as they are.
void check_nulls_of_tree(const DeviceArray& array, const Type& to, const UsedRows& used);

/// Whether all rows of the children of `array` count: it has no nulls itself, and all of its own
/// rows count.
bool has_whole_children(const DeviceArray& array, bool is_whole);

ARROWDL_END_NAMESPACE
