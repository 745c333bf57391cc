// One buffer of an array as an array of its own.
#pragma once

#include <cstdint>

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// Buffer `i` of a boolean, fixed-width, binary or string array as an array of its own: bytes for
/// bits and for the values of binary and string. It starts where the node's buffers start, with
/// the window's offset before its rows. Zero-copy, but for bool8 whose bytes are not 0 and 1 (where
/// the host can see them): BufferError under Copy::kNever. How many bytes strings take is read from
/// their last offset, off whatever device. An empty array for a buffer that is absent.
DeviceArray buffer_of_array(const DeviceArray& array, int64_t i, Copy copy);

}  // namespace arrowdl
