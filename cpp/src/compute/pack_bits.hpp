// Packs bytes and elements into bits, and makes sentinel values null.
#pragma once

#include <cstdint>
#include <string_view>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// `count` bytes at `bools` as bits in new host memory: 1 for any byte other than 0.
Buffer pack_bools(const uint8_t* bools, int64_t count);

/// Which elements, read as unsigned integers, become set bits: those whose bits of `mask`, with
/// those of `flip` flipped, are more than `limit`; the others if `invert` is 1.
struct BitRule {
  uint64_t flip = 0;
  uint64_t mask = ~uint64_t{0};
  uint64_t limit = 0;
  int64_t invert = 0;
};

/// Writes a bit for each of the `count` elements of `itemsize` bytes (1 to 8) at `elements`.
void pack_on_device(KernelOps& kernels, const Device& device, uint8_t* bits,
                    const uint8_t* elements, int64_t count, int64_t itemsize, const BitRule& rule,
                    StreamHandle stream);
/// The same in new memory.
Buffer pack_on_device(KernelWork& work, const uint8_t* elements, int64_t count, int64_t itemsize,
                      const BitRule& rule);

/// `rows`, null also where `rule` does not hold for the element of `elements`, an array of a fixed
/// width of 1 to 8 bytes, with as many rows on the same device. The nulls of the result are not
/// counted. Raises BufferError for a type without a bitmap, and without kernels.
DeviceArray null_unless(const DeviceArray& rows, const DeviceArray& elements, const BitRule& rule);

/// `array` of floating-point numbers, null also where an element is NaN. Raises BufferError for
/// other types and for memory that the host can neither read nor copy. On a device kernels look for
/// NaN, or else the host in a copy.
DeviceArray nan_to_null(const DeviceArray& array);

/// `array` of a fixed width, null also where the bytes of an element are those of `item`. Raises
/// ValueError for an item of another size, BufferError as `nan_to_null` does.
DeviceArray values_to_null(const DeviceArray& array, std::string_view item);

ARROWDL_END_NAMESPACE
