// Makes sentinel values null.
#pragma once

#include <string_view>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// `array` of floating-point numbers, null also where an element is NaN. Raises BufferError for
/// other types and for memory that the host can neither read nor copy. On a device kernels look for
/// NaN, or else the host in a copy.
DeviceArray nan_to_null(const DeviceArray& array);

/// `array` of a fixed width, null also where the bytes of an element are those of `item`. Raises
/// ValueError for an item of another size, BufferError as `nan_to_null` does.
DeviceArray values_to_null(const DeviceArray& array, std::string_view item);

ARROWDL_END_NAMESPACE
