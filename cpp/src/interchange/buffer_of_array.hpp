// Shares one buffer of an array as an array of its own.
#pragma once

#include <cstdint>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Buffer `i` of a boolean, fixed-width, binary or string array as an array: of uint8 for bits and
/// for the data of strings. It starts where the buffer starts: the offset of `array` is not
/// applied. Zero-copy, except for bool8 with bytes other than 0 and 1 (where the host can read
/// them): those are copied, or raise BufferError under Copy::kNever. Reads the last offset of
/// strings, from a device too. An empty DeviceArray for an absent buffer.
DeviceArray buffer_of_array(const DeviceArray& array, int64_t i, Copy copy);

ARROWDL_END_NAMESPACE
