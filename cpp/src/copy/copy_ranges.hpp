// Bytes to other memory: as they lie, or by way of pinned memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sync/stream_work.hpp"

namespace arrowdl {

/// Bytes on their way: from where, and where in the memory that they go to.
struct CopyRange {
  const void* source = nullptr;
  int64_t size = 0;
  int64_t offset = 0;
};

/// Copies `ranges`, which `work` holds and whose offsets ascend, on its stream: from memory
/// of `from` to `target` on `to`. With `pin`, pageable memory of the CPU goes through pinned memory
/// where the runtime has such; what lies between the ranges is written over then.
void copy_ranges(StreamWork& work, const Device& from, const Device& to, uint8_t* target,
                 const std::vector<CopyRange>& ranges, bool pin);

}  // namespace arrowdl
