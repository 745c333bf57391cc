// Copies ranges of memory to a device, by way of pinned memory where that is faster.
#include "copy/copy_ranges.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "copy/staging_pool.hpp"
#include "util/parallel_for.hpp"

namespace arrowdl {
namespace {

/// Calls `use(offset, source, size)` for the parts of `ranges` from `start` to `end`.
template <typename Use>
void for_each_part(const std::vector<CopyRange>& ranges, int64_t start, int64_t end,
                   const Use& use) {
  for (const CopyRange& range : ranges) {
    const int64_t first = std::max(start, range.offset);
    const int64_t last = std::min(end, range.offset + range.size);
    if (first >= last) continue;
    use(first, static_cast<const uint8_t*>(range.source) + (first - range.offset), last - first);
  }
}

/// The pinned memory to copy through; none where the copy is direct.
std::optional<Device> find_staging(MemoryOps& memory, const Device& from, const Device& to,
                                   const std::vector<CopyRange>& ranges) {
  if (from.type != kDLCPU) return {};
  const std::optional<Device> pinned = memory.find_pinned(to);
  const bool needs_none =
      !pinned || std::all_of(ranges.begin(), ranges.end(), [&](const CopyRange& range) {
        return memory.is_pinned(range.source);
      });
  return needs_none ? std::nullopt : pinned;
}

/// Fills `block` with the parts of `ranges` from `start` to `end`. Several threads: one is slower
/// than the bus to the device.
void fill_block(uint8_t* block, int64_t start, int64_t end, const std::vector<CopyRange>& ranges) {
  constexpr int64_t kShare = int64_t{512} << 10;
  parallel_for((end - start + kShare - 1) / kShare, [&](int64_t i) noexcept {
    const int64_t first = start + i * kShare;
    const auto copy = [&](int64_t offset, const uint8_t* source, int64_t n) {
      std::memcpy(block + (offset - start), source, static_cast<std::size_t>(n));
    };
    for_each_part(ranges, first, std::min(end, first + kShare), copy);
  });
}

/// Copies block by block, so that the host fills a block while the device copies earlier ones.
void copy_staged(StreamWork& work, const Device& pinned, const Device& to, uint8_t* target,
                 const std::vector<CopyRange>& ranges) {
  MemoryOps& memory = work.memory();
  const StreamHandle stream = work.stream();
  const int64_t size = ranges.back().offset + ranges.back().size;
  for (int64_t start = 0; start < size; start += StagingPool::kMaxBlock) {
    const int64_t end = std::min(size, start + StagingPool::kMaxBlock);
    const std::shared_ptr<uint8_t> block = StagingPool::get().take(memory, pinned, end - start);
    if (block == nullptr) {
      for_each_part(ranges, start, end, [&](int64_t offset, const uint8_t* source, int64_t n) {
        memory.copy(to, target + offset, Device{}, source, n, stream);
      });
      continue;
    }
    work.hold(block);
    fill_block(block.get(), start, end, ranges);
    memory.copy(to, target + start, pinned, block.get(), end - start, stream);
    if (end < size) work.release_last();
  }
}

}  // namespace

void copy_ranges(StreamWork& work, const Device& from, const Device& to, uint8_t* target,
                 const std::vector<CopyRange>& ranges, bool pin) {
  if (ranges.empty()) return;
  MemoryOps& memory = work.memory();
  const auto staging = pin ? find_staging(memory, from, to, ranges) : std::nullopt;
  if (staging) {
    copy_staged(work, *staging, to, target, ranges);
    return;
  }
  for (const CopyRange& range : ranges) {
    memory.copy(to, target + range.offset, from, range.source, range.size, work.stream());
  }
}

}  // namespace arrowdl
