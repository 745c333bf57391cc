// Packs the elements of arrays into bits, with the kernels of a device.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"
#include "sync/kernel_work.hpp"

ARROWDL_BEGIN_NAMESPACE

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

ARROWDL_END_NAMESPACE
