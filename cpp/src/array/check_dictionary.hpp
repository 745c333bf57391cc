// Refuses dictionaries whose values have nulls.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises BufferError if the values of the dictionary of `array`, if it has one, have nulls: a
/// valid code may refer to a null, which the codes alone would hide.
void check_dictionary(const DeviceArray& array);

ARROWDL_END_NAMESPACE
