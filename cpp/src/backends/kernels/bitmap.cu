// Kernels over bitmaps.
#include "threads.cuh"

namespace {

/// One bit for `repeat` consecutive elements; the first element has bit `offset`. Without bytes
/// (nullptr) all are set.
struct Bits {
  const unsigned char* bytes;
  long long offset;
  long long repeat;

  /// The bits of the `count` elements (1 to 25) from `element` on; the others are undefined.
  __device__ unsigned read(long long element, int count) const {
    if (bytes == nullptr) return ~0U;
    if (repeat != 1) return read_repeated(element, count);
    const long long first = offset + element;
    const unsigned char* const byte = bytes + (first >> 3);
    const int shift = static_cast<int>(first & 7);
    const int last = (shift + count - 1) >> 3;
    unsigned found = byte[0];
    if (last >= 1) found |= static_cast<unsigned>(byte[1]) << 8;
    if (last >= 2) found |= static_cast<unsigned>(byte[2]) << 16;
    if (last >= 3) found |= static_cast<unsigned>(byte[3]) << 24;
    return found >> shift;
  }

  __device__ unsigned read_repeated(long long element, int count) const {
    long long rows = divide(element, repeat);
    long long within = element - rows * repeat;
    unsigned found = 0;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const long long bit = offset + rows;
      found |= static_cast<unsigned>(bytes[bit >> 3] >> (bit & 7) & 1) << i;
      if (++within == repeat) {
        within = 0;
        ++rows;
      }
    }
    return found;
  }
};

/// 8 bytes of 0 or 1, one for each of the lowest 8 bits.
__device__ unsigned long long spread(unsigned bits) {
  const unsigned low = (bits & 15) * 0x00204081U & 0x01010101U;
  const unsigned high = (bits >> 4 & 15) * 0x00204081U & 0x01010101U;
  return static_cast<unsigned long long>(high) << 32 | low;
}

/// Repeats each of the bits of `count` elements for its `itemsize` bytes: 16 bits.
__device__ unsigned repeat_bits(unsigned bits, int count, int itemsize) {
  if (itemsize == 1) return bits;
  const unsigned ones = (1U << itemsize) - 1;
  unsigned made = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) made |= (bits >> i & 1) * ones << i * itemsize;
  return made;
}

__device__ int find_rest(long long all, long long done, int most) {
  return all - done < most ? static_cast<int>(all - done) : most;
}

}  // namespace

/// Sets `target[i]` to 1 where bit i is set, else to 0, for i < `count`. A thread writes a block.
extern "C" __global__ void unpack_bits(unsigned char* target, long long size, long long count,
                                       const unsigned char* bits, long long offset,
                                       long long repeat) {
  const Bits given{bits, offset, repeat};
#pragma unroll 1
  for (long long block = first_element(); block < size; block += stride()) {
    const long long first = block * kBlock;
    const int rest = find_rest(count, first, kBlock);
    const unsigned set = given.read(first, rest);
    const Block made{spread(set), spread(set >> 8)};
    write_part(reinterpret_cast<long long>(target + first), made, rest);
  }
}

/// Copies the `nbytes` bytes of elements of `itemsize` bytes (1, 2, 4, 8 or 16), but for those
/// whose bit is not set: they become the first of 16 bytes of `low` and `high`, which repeat one
/// element. `source` may be `target`.
extern "C" __global__ void copy_set(unsigned char* target, long long size, long long nbytes,
                                    const unsigned char* source, const unsigned char* bits,
                                    long long offset, long long repeat, long long itemsize,
                                    unsigned long long low, unsigned long long high) {
  const Bits given{bits, offset, repeat};
  const int width = static_cast<int>(itemsize);
#pragma unroll 1
  for (long long block = first_element(); block < size; block += stride()) {
    const long long first = block * kBlock;
    const int rest = find_rest(nbytes, first, kBlock);
    const int count = rest / width;
    const unsigned set = repeat_bits(given.read(block * (kBlock / width), count), count, width);
    const Block kept{spread(set) * 255, spread(set >> 8) * 255};
    Block made = read_part(reinterpret_cast<long long>(source + first), rest);
    made.low = (made.low & kept.low) | (low & ~kept.low);
    made.high = (made.high & kept.high) | (high & ~kept.high);
    write_part(reinterpret_cast<long long>(target + first), made, rest);
  }
}

/// Sets bit `shift` + i of `target` to the AND of both bits i, for i < `count`. A thread writes a
/// whole byte; its other bits become 0.
extern "C" __global__ void and_bits(unsigned char* target, long long size, long long shift,
                                    long long count, const unsigned char* a, long long a_offset,
                                    long long a_repeat, const unsigned char* b, long long b_offset,
                                    long long b_repeat) {
  const Bits first{a, a_offset, a_repeat};
  const Bits second{b, b_offset, b_repeat};
#pragma unroll 1
  for (long long byte = first_element(); byte < size; byte += stride()) {
    const int skipped = byte == 0 ? static_cast<int>(shift) : 0;
    const long long element = byte * 8 + skipped - shift;
    const int n = find_rest(count, element, 8 - skipped);
    unsigned both = 0;
    if (n > 0) both = first.read(element, n) & second.read(element, n) & ((1U << n) - 1);
    target[byte] = static_cast<unsigned char>(both << skipped);
  }
}

/// Adds to one of `results` the number of set bits among the `count` bits from `offset` on. `size`
/// is a number of threads.
extern "C" __global__ void count_bits(unsigned long long* results, long long /*size*/,
                                      const unsigned char* bits, long long offset,
                                      long long count) {
  const Bits given{bits, offset, 1};
  unsigned long long found = 0;
#pragma unroll 1
  for (long long i = first_element() * kBlock; i < count; i += stride() * kBlock) {
    const int n = find_rest(count, i, kBlock);
    found += static_cast<unsigned>(__popc(given.read(i, n) & ((1U << n) - 1)));
  }
  if (found != 0) atomicAdd(find_result(results), found);
}
