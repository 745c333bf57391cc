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

/// A bit for each byte of a block: whether it is not 0.
__device__ unsigned find_nonzero(const Block& block) {
  constexpr unsigned long long kLow = 0x7f7f7f7f7f7f7f7fULL;
  constexpr unsigned long long kOnes = 0x0101010101010101ULL;
  constexpr unsigned long long kGather = 0x0102040810204080ULL;  // bit 8 * i to bit 56 + i
  const unsigned long long low = (((block.low & kLow) + kLow) | block.low) >> 7 & kOnes;
  const unsigned long long high = (((block.high & kLow) + kLow) | block.high) >> 7 & kOnes;
  return static_cast<unsigned>(low * kGather >> 56) | static_cast<unsigned>(high * kGather >> 56)
                                                          << 8;
}

/// What `pack_bits` asks of an element.
struct Rule {
  unsigned long long flip;
  unsigned long long mask;
  unsigned long long limit;

  __device__ bool holds(unsigned long long value) const { return ((value ^ flip) & mask) > limit; }
  /// The same for the bytes of a block, each an element, with a limit of 0: of `flip` and `mask`
  /// the lowest byte counts.
  __device__ unsigned find(const Block& bytes) const {
    constexpr unsigned long long kEach = 0x0101010101010101ULL;
    const unsigned long long flips = (flip & 255) * kEach;
    const unsigned long long masks = (mask & 255) * kEach;
    return find_nonzero({(bytes.low ^ flips) & masks, (bytes.high ^ flips) & masks});
  }
};

}  // namespace

/// Packs a bit for each of the `count` elements of `itemsize` bytes (1, 2, 4 or 8): whether its
/// bits of `mask`, with those of `flip` flipped, are more than `limit`; the opposite with `invert`.
/// A thread packs 32 elements, of bytes by two reads at a time: with one, too few are under way.
/// Bits after the last element are 0.
extern "C" __global__ void pack_bits(unsigned char* target, long long size, long long count,
                                     long long source, long long itemsize, unsigned long long flip,
                                     unsigned long long mask, unsigned long long limit,
                                     long long invert) {
  constexpr int kBits = 32;
  const Rule rule{flip, mask, limit};
  const int width = static_cast<int>(itemsize);
  const int step = kBlock / width;
  const unsigned long long ones = width == 8 ? ~0ULL : (1ULL << width * 8) - 1;
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long from = source + i * kBits * width;
    const int rest = count - i * kBits < kBits ? static_cast<int>(count - i * kBits) : kBits;
    unsigned made = 0;
    if (width == 1 && limit == 0 && rest == kBits && from % kBlock == 0) {
      const Block low = read_block(from);
      const Block high = read_block(from + kBlock);
      made = rule.find(low) | rule.find(high) << 16;
    } else {
#pragma unroll 1
      for (int bit = 0; bit < rest; bit += step) {
        const Block block = read_part(from + bit * width, (rest - bit) * width);
#pragma unroll 1
        for (int j = 0; j < step; ++j) {
          if (rule.holds(block.read(j * width) & ones)) made |= 1U << (bit + j);
        }
      }
    }
    if (invert != 0) made = ~made;
    if (rest == kBits) {  // memory is aligned to 64 bytes
      reinterpret_cast<unsigned*>(target)[i] = made;
      continue;
    }
    made &= (1U << rest) - 1;
#pragma unroll 1
    for (int byte = 0; byte * 8 < rest; ++byte) {
      target[i * 4 + byte] = static_cast<unsigned char>(made >> byte * 8);
    }
  }
}
