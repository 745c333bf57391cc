// Blocks of host memory, used again.
#pragma once

#include <cstddef>

namespace arrowdl {

/// `size` bytes at a multiple of 64, padded to one more at least; nullptr where there is no memory.
/// A block of 4 KiB or more may be one that was freed before, with what is in it: fresh memory
/// costs more in page faults than in writing it.
void* allocate_aligned(std::size_t size) noexcept;

/// Frees memory of `allocate_aligned(size)`, or keeps it for the next: of 4 KiB or more, up to 32
/// MiB in 256 blocks, those freed last.
void free_aligned(void* block, std::size_t size) noexcept;

}  // namespace arrowdl
