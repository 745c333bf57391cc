// Casts binary and strings to other offsets and to views.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the offsets and bytes, or the views, of `array` as `to` has them. Raises Misfit if the
/// offsets of `to` cannot count the bytes.
void cast_binary(const DeviceArray& array, const Type& to, ArrayParts* parts);

ARROWDL_END_NAMESPACE
