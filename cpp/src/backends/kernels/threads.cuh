// What all kernels share: the elements of a thread, and memory that it reads or writes at once.
#pragma once

namespace {

__device__ long long first_element() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ long long stride() { return static_cast<long long>(gridDim.x) * blockDim.x; }

/// Many threads that change one number, or numbers of one cache line, wait for each other: a kernel
/// has one result in each of 64 lines, which the host puts together. As in kernel_blocks.hpp.
constexpr int kResults = 1024;

/// The result of this thread: one in each 128 bytes is used.
template <typename Number>
__device__ Number* find_result(Number* results) {
  return results + blockIdx.x * 16 % kResults;
}

/// `a / b` of numbers that are not negative: with 32 bits if they fit, in a third of the time.
__device__ long long divide(long long a, long long b) {
  if (((a | b) >> 32) == 0) return static_cast<unsigned>(a) / static_cast<unsigned>(b);
  return a / b;
}

/// 16 bytes: as many as a thread reads or writes at once. With fewer, a GPU has too few requests
/// under way for all of its memory's bandwidth.
struct Block {
  unsigned long long low;  // little-endian
  unsigned long long high;

  /// The bytes from `byte` on, those of one half.
  __device__ unsigned long long read(int byte) const {
    return (byte < 8 ? low : high) >> byte % 8 * 8;
  }
  /// Replaces `width` bytes (1, 2, 4 or 8) from `byte` on, a multiple of `width`.
  __device__ void write(int byte, int width, unsigned long long value) {
    const int shift = byte % 8 * 8;
    const unsigned long long kept = width == 8 ? 0 : ~(((1ULL << width * 8) - 1) << shift);
    if (byte < 8) {
      low = (low & kept) | value << shift;
    } else {
      high = (high & kept) | value << shift;
    }
  }
};
constexpr int kBlock = 16;

/// A whole block at an address that is aligned to 4 bytes.
__device__ Block read_words(long long address) {
  Block block{0, 0};
#pragma unroll
  for (int i = 0; i < kBlock; i += 4) {
    block.write(i, 4, *reinterpret_cast<const unsigned*>(address + i));
  }
  return block;
}

__device__ Block read_block(long long address) {
  const ulonglong2 both = *reinterpret_cast<const ulonglong2*>(address);
  return {both.x, both.y};
}

/// The first `size` bytes at any address; the others are 0.
__device__ Block read_part(long long address, long long size) {
  if (size >= kBlock && address % kBlock == 0) return read_block(address);
  if (size >= kBlock && address % 4 == 0) return read_words(address);
  Block block{0, 0};
#pragma unroll 1
  for (int i = 0; i < kBlock && i < size; ++i) {
    block.write(i, 1, reinterpret_cast<const unsigned char*>(address)[i]);
  }
  return block;
}

/// Writes the first `size` bytes of a block to any address.
__device__ void write_part(long long address, const Block& block, long long size) {
  if (size >= kBlock && address % kBlock == 0) {
    ulonglong2 both;
    both.x = block.low;
    both.y = block.high;
    *reinterpret_cast<ulonglong2*>(address) = both;
    return;
  }
#pragma unroll 1
  for (int i = 0; i < kBlock && i < size; ++i) {
    reinterpret_cast<unsigned char*>(address)[i] = static_cast<unsigned char>(block.read(i));
  }
}

}  // namespace
