// Refuses codes of null values.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises BufferError if a valid row of `array`, if it has a dictionary, refers to a null value,
/// which the codes alone would hide; on a device that the host cannot read, if there is one.
void check_dictionary(const DeviceArray& array);

ARROWDL_END_NAMESPACE
