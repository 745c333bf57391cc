// Copies ranges of memory to a device, directly or by way of pinned memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A range of memory, and its offset in the target block.
struct CopyRange {
  const void* source = nullptr;
  int64_t size = 0;
  int64_t offset = 0;
};

/// Copies `ranges` from memory of `from` to `target` on `to`, on the stream of `work`, which keeps
/// the ranges alive. Their offsets must ascend. With `pin`, pageable memory of the CPU goes through
/// pinned memory where the runtime has it; then bytes between the ranges are overwritten.
void copy_ranges(StreamWork& work, const Device& from, const Device& to, uint8_t* target,
                 const std::vector<CopyRange>& ranges, bool pin);

/// Copies `ranges` from memory of `from` to `target` in host memory, and waits on the host until
/// they are there: for each 4 MiB once, and only for the first and last of many. With `pin`, the
/// copies go through pinned memory where the runtime has it; then bytes between the ranges are
/// overwritten.
void copy_ranges_to_host(StreamWork& work, const Device& from, uint8_t* target,
                         const std::vector<CopyRange>& ranges, bool pin);

ARROWDL_END_NAMESPACE
