// Aligned host memory that is reused.
#pragma once

#include <cstddef>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// `size` bytes, uninitialised, aligned to 64 and padded to the next multiple of 64 above `size`;
/// nullptr without memory. A block of 4 KiB or more may be a freed one with its old content: fresh
/// memory costs more in page faults than in writing it.
void* allocate_aligned(std::size_t size) noexcept;

/// Frees memory of `allocate_aligned(size)`. Keeps blocks of 4 KiB or more for reuse: the last
/// freed, up to 256 blocks and 32 MiB.
void free_aligned(void* block, std::size_t size) noexcept;

ARROWDL_END_NAMESPACE
