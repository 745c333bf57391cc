// Looks for NaN in columns.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Whether a field of `fields`, a struct in host memory, has a NaN: of fields of float32 and
/// float64, nulls included. Several threads read many values: one is slower than the memory.
bool has_nan(const DeviceArray& fields);

ARROWDL_END_NAMESPACE
