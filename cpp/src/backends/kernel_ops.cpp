// Launches the kernels over bitmaps, on any runtime.
#include <cstdint>

#include "arrowdl/backend.hpp"
#include "backends/kernel_blocks.hpp"

ARROWDL_BEGIN_NAMESPACE

void KernelOps::unpack_bits(const Device& device, uint8_t* target, int64_t size,
                            const Bitmap& bitmap, StreamHandle stream) {
  if (size <= 0) return;
  Bitmap given = bitmap;
  int64_t blocks = count_blocks(size);
  void* arguments[] = {&target, &blocks, &size, &given.bits, &given.offset, &given.repeat};
  launch(device, Kernel::kUnpackBits, blocks, arguments, stream);
}

void KernelOps::copy_set(const Device& device, uint8_t* target, int64_t size, const uint8_t* source,
                         const Bitmap& bitmap, const void* item, int64_t itemsize,
                         StreamHandle stream) {
  if (size <= 0) return;
  Bitmap given = bitmap;
  Pattern pattern(item, itemsize);
  int64_t nbytes = size * itemsize;
  int64_t blocks = count_blocks(nbytes);
  void* arguments[] = {&target,       &blocks,       &nbytes,   &source,      &given.bits,
                       &given.offset, &given.repeat, &itemsize, &pattern.low, &pattern.high};
  launch(device, Kernel::kCopySet, blocks, arguments, stream);
}

void KernelOps::and_bits(const Device& device, uint8_t* target, int64_t shift, int64_t count,
                         const Bitmap& a, const Bitmap& b, StreamHandle stream) {
  Bitmap first = a;
  Bitmap second = b;
  int64_t size = (shift + count + 7) / 8;
  if (size <= 0) return;
  void* arguments[] = {&target,       &size,         &shift,       &count,         &first.bits,
                       &first.offset, &first.repeat, &second.bits, &second.offset, &second.repeat};
  launch(device, Kernel::kAndBits, size, arguments, stream);
}

ARROWDL_END_NAMESPACE
