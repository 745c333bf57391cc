// Copies validity bitmaps.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The validity of the rows of `array`, in host memory, from bit 0 on; no buffer if no row is null.
Buffer copy_validity(const DeviceArray& array, int64_t* null_count);

ARROWDL_END_NAMESPACE
