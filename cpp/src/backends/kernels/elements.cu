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
      const long long index = rest % dim[0];
      rest /= dim[0];
      to += index * dim[1];
      from += index * dim[2];
    }
    copy_unit(to, from, unit);
  }
}

/// Packs a bit for each of the `count` elements of `itemsize` bytes, which are read in units of
/// `unit`: whether its bits of `mask`, with those of `flip` flipped, are more than `limit`; the
/// opposite with `invert`.
extern "C" __global__ void pack_bits(unsigned char* target, long long size, long long count,
                                     long long source, long long itemsize, long long unit,
                                     unsigned long long flip, unsigned long long mask,
                                     unsigned long long limit, long long invert) {
#pragma unroll 1
  for (long long byte = first_element(); byte < size; byte += stride()) {
    unsigned made = 0;
#pragma unroll 1
    for (int bit = 0; bit < 8 && byte * 8 + bit < count; ++bit) {
      unsigned long long value = 0;  // integers are little-endian
      const long long from = source + (byte * 8 + bit) * itemsize;
#pragma unroll 1
      for (long long at = 0; at < itemsize; at += unit) {
        copy_unit(reinterpret_cast<long long>(&value) + at, from + at, unit);
      }
      const bool is_more = ((value ^ flip) & mask) > limit;
      if (is_more == (invert == 0)) made |= 1U << bit;
    }
    target[byte] = static_cast<unsigned char>(made);
  }
}
