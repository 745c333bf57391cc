// Copies bitmaps of a device to the host.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"
#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The `count` bits of a device that begin at bit `offset` of `bits`, on the host from
/// `work.wait()` on, where they begin at bit `offset % 8`. None for none: all are set.
Buffer download_bits(StreamWork& work, const Device& device, const uint8_t* bits, int64_t offset,
                     int64_t count);

/// The bitmap of `array` on the host, in which bit `array.offset() % 8` is the first row's. Waits
/// for it.
Buffer download_validity(const DeviceArray& array);

ARROWDL_END_NAMESPACE
