// Reads a field of a struct with its run ends decoded.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Field `i` of a struct, as `array.field(i)`. Run ends are decoded first: they have no bitmap for
/// the nulls of the struct. So are those in FixedSizeLists, and null values of dictionaries are
/// null rows. Raises as `DeviceArray::field` and `decode_run_ends` do.
DeviceArray read_field(const DeviceArray& array, int64_t i);

ARROWDL_END_NAMESPACE
