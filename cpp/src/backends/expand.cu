// The kernels: what becomes of bits on a device. tools/make_ptx.py makes expand_ptx.hpp of them,
// which is what the library carries, so that no build needs a toolkit. The fake driver of the tests
// compiles this very file for the CPU.

namespace {

/// One bit for `repeat` elements that follow each other, bit `offset` for the first of them.
struct Bits {
  const unsigned char* bytes;
  long long offset;
  long long repeat;

  __device__ bool is_set(long long element) const {
    // A division of 64 bits takes as long as everything else here.
    const long long i = offset + (repeat == 1 ? element : element / repeat);
    return (bytes[i >> 3] >> (i & 7) & 1) != 0;
  }
};

__device__ long long first_element() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ long long stride() { return static_cast<long long>(gridDim.x) * blockDim.x; }

template <typename Item>
__device__ void fill_unset(Item* target, long long size, Bits bits, Item item) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    if (!bits.is_set(i)) target[i] = item;
  }
}

}  // namespace

/// `target[i]` becomes 1 where the bit is set, else 0. No bits (nullptr): all are set.
extern "C" __global__ void expand_bits(unsigned char* target, long long size,
                                       const unsigned char* bits, long long offset,
                                       long long repeat) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    target[i] = bits == nullptr || Bits{bits, offset, repeat}.is_set(i) ? 1 : 0;
  }
}

/// `target[i]` becomes `item` where the bit is not set: one kernel for each width of an element.
#define FILL_UNSET(width, Item)                                                               \
  extern "C" __global__ void fill_unset_##width(Item* target, long long size,                 \
                                                const unsigned char* bits, long long offset,  \
                                                long long repeat, Item item) {                \
    fill_unset(target, size, Bits{bits, offset, repeat}, item);                               \
  }

FILL_UNSET(1, unsigned char)
FILL_UNSET(2, unsigned short)
FILL_UNSET(4, unsigned int)
FILL_UNSET(8, unsigned long long)
FILL_UNSET(16, ulonglong2)
