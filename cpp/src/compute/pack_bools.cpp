// Packs booleans into bits.
#include "compute/pack_bools.hpp"

#include "util/bit_util.hpp"
#include "util/bitmap_writer.hpp"

ARROWDL_BEGIN_NAMESPACE

Buffer pack_bools(const uint8_t* bools, int64_t count) {
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(count), &target);
  if (count > 0) pack_bits(bools, count, target);
  return bits;
}

ARROWDL_END_NAMESPACE
