// Checks that fields which are requested as not nullable have no nulls.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises ValueError if `array` has null rows and `to` is not nullable. Raises Undecided instead if
/// the nulls are not known, or may not count: `is_whole` says that every row counts.
void check_nulls(const DeviceArray& array, const Type& to, bool is_whole);

/// The same for `array` and all of its children and dictionaries, which `to` takes as they are.
void check_nulls_of_tree(const DeviceArray& array, const Type& to, bool is_whole);

/// Whether all rows of the children of `array` count: it has no nulls itself, and all of its own
/// rows count.
bool has_whole_children(const DeviceArray& array, bool is_whole);

ARROWDL_END_NAMESPACE
