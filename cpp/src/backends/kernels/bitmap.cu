// Kernels over bitmaps.
#include "threads.cuh"

namespace {

/// One bit for `repeat` consecutive elements; the first element has bit `offset`.
struct Bits {
  const unsigned char* bytes;
  long long offset;
  long long repeat;

  __device__ bool is_set(long long element) const {
    // A 64-bit division takes as long as the rest of the kernel.
    const long long i = offset + (repeat == 1 ? element : element / repeat);
    return (bytes[i >> 3] >> (i & 7) & 1) != 0;
  }
};

template <typename Item>
__device__ void fill_unset(Item* target, long long size, Bits bits, Item item) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    if (!bits.is_set(i)) target[i] = item;
  }
}

__device__ bool is_set(const Bits& bits, long long element) {
  return bits.bytes == nullptr || bits.is_set(element);
}

}  // namespace

/// Sets `target[i]` to 1 where the bit is set, else to 0. Without bits (nullptr) all are set.
extern "C" __global__ void unpack_bits(unsigned char* target, long long size,
                                       const unsigned char* bits, long long offset,
                                       long long repeat) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    target[i] = is_set(Bits{bits, offset, repeat}, i) ? 1 : 0;
  }
}

/// Sets `target[i]` to `item` where the bit is not set: one kernel for each width of an element.
#define FILL_UNSET(width, Item)                                                              \
  extern "C" __global__ void fill_unset_##width(Item* target, long long size,                \
                                                const unsigned char* bits, long long offset, \
                                                long long repeat, Item item) {               \
    fill_unset(target, size, Bits{bits, offset, repeat}, item);                              \
  }

FILL_UNSET(1, unsigned char)
FILL_UNSET(2, unsigned short)
FILL_UNSET(4, unsigned int)
FILL_UNSET(8, unsigned long long)
FILL_UNSET(16, ulonglong2)

/// Sets bit `shift` + i of `target` to the AND of both bits i, for i < `count`. A thread writes a
/// whole byte; its other bits become 0.
extern "C" __global__ void and_bits(unsigned char* target, long long shift, long long count,
                                    const unsigned char* a, long long a_offset, long long a_repeat,
                                    const unsigned char* b, long long b_offset,
                                    long long b_repeat) {
  const Bits first{a, a_offset, a_repeat};
  const Bits second{b, b_offset, b_repeat};
  const long long size = (shift + count + 7) / 8;
#pragma unroll 1
  for (long long byte = first_element(); byte < size; byte += stride()) {
    unsigned made = 0;
#pragma unroll 1
    for (int bit = 0; bit < 8; ++bit) {
      const long long i = byte * 8 + bit - shift;
      if (i < 0 || i >= count) continue;
      if (is_set(first, i) && is_set(second, i)) made |= 1U << bit;
    }
    target[byte] = static_cast<unsigned char>(made);
  }
}

/// Adds to `*result` the number of set bits among the `count` bits from `offset` on.
extern "C" __global__ void count_bits(unsigned long long* result, long long size,
                                      const unsigned char* bits, long long offset,
                                      long long count) {
  const Bits given{bits, offset, 1};
  unsigned long long found = 0;
#pragma unroll 1
  for (long long byte = first_element(); byte < size; byte += stride()) {
#pragma unroll 1
    for (long long i = byte * 8; i < byte * 8 + 8 && i < count; ++i) {
      found += given.is_set(i) ? 1 : 0;
    }
  }
  if (found != 0) atomicAdd(result, found);
}
