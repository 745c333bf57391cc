// Rows in the form that tensors are made of.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Whether run ends are the items of `type`, FixedSizeLists of any depth.
bool has_inner_runs(const Type& type);

/// `array` with the run ends in its FixedSizeLists decoded, and with rows null whose value in the
/// dictionary is null; the same array if it has neither. Dictionaries that the host cannot read
/// stay as they are. Raises ValueError for malformed indices and run ends.
DeviceArray plain_rows(const DeviceArray& array);

ARROWDL_END_NAMESPACE
