// Kernels over the elements of tensors.
#include "rows.cuh"
#include "threads.cuh"

/// Copies `size` units of `unit` bytes between tensors with any strides. `dims` has the length, and
/// the strides of target and source in bytes, of each of `ndim` dimensions.
extern "C" __global__ void copy_strided(long long target, long long size, long long source,
                                        long long unit, long long ndim, const long long* dims) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    long long rest = i;
    long long to = target;
    long long from = source;
#pragma unroll 1
    for (long long d = ndim - 1; d >= 0; --d) {
      const long long* dim = dims + d * 3;
      const long long next = divide(rest, dim[0]);
      const long long index = rest - next * dim[0];
      rest = next;
      to += index * dim[1];
      from += index * dim[2];
    }
    copy_unit(to, from, unit);
  }
}

namespace {

/// A bit for each of 8 bytes: whether it is not 0.
__device__ unsigned find_nonzero(unsigned long long bytes) {
  constexpr unsigned long long kLow = 0x7f7f7f7f7f7f7f7fULL;
  const unsigned long long found = (((bytes & kLow) + kLow) | bytes) >> 7 & 0x0101010101010101ULL;
  return static_cast<unsigned>(found * 0x0102040810204080ULL >> 56);
}

}  // namespace

/// Packs a bit for each of the `count` elements of `itemsize` bytes (1, 2, 4 or 8): whether its
/// bits of `mask`, with those of `flip` flipped, are more than `limit`; the opposite with `invert`.
/// A thread packs 16 elements; bits after the last one are 0.
extern "C" __global__ void pack_bits(unsigned char* target, long long size, long long count,
                                     long long source, long long itemsize, unsigned long long flip,
                                     unsigned long long mask, unsigned long long limit,
                                     long long invert) {
  constexpr int kBits = 16;
  const int width = static_cast<int>(itemsize);
  const int step = kBlock / width;
  const unsigned long long ones = width == 8 ? ~0ULL : (1ULL << width * 8) - 1;
  const unsigned long long each = 0x0101010101010101ULL;
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long first = i * kBits;
    const int rest = count - first < kBits ? static_cast<int>(count - first) : kBits;
    unsigned made = 0;
#pragma unroll 1
    for (int bit = 0; bit < rest; bit += step) {
      const Block block =
          read_part(source + (first + bit) * width, static_cast<long long>(rest - bit) * width);
      if (width == 1 && limit == 0) {
        const unsigned long long flips = (flip & 255) * each;
        const unsigned long long masks = (mask & 255) * each;
        made = find_nonzero((block.low ^ flips) & masks) |
               find_nonzero((block.high ^ flips) & masks) << 8;
        continue;
      }
#pragma unroll 1
      for (int j = 0; j < step; ++j) {
        const unsigned long long value = block.read(j * width) & ones;
        if (((value ^ flip) & mask) > limit) made |= 1U << (bit + j);
      }
    }
    if (invert != 0) made = ~made;
    made &= (1U << rest) - 1;
    if (rest > 8) {  // memory is aligned to 64 bytes
      reinterpret_cast<unsigned short*>(target)[i] = static_cast<unsigned short>(made);
    } else {
      target[2 * i] = static_cast<unsigned char>(made);
    }
  }
}
