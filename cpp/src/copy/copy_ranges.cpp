#include "copy/copy_ranges.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "copy/staging_pool.hpp"
#include "util/parallel_for.hpp"

namespace arrowdl {
namespace {

/// Calls `use(position, source, size)` for what `pieces` have from `start` to `end`.
template <typename Use>
void for_each_part(const std::vector<CopyRange>& pieces, int64_t start, int64_t end,
                   const Use& use) {
  for (const CopyRange& piece : pieces) {
    const int64_t first = std::max(start, piece.position);
    const int64_t last = std::min(end, piece.position + piece.size);
    if (first >= last) continue;
    use(first, static_cast<const uint8_t*>(piece.source) + (first - piece.position), last - first);
  }
}

/// Where the host bytes go through; none where they need not.
std::optional<Device> find_staging(MemoryOps& memory, const Device& from, const Device& to,
                                   const std::vector<CopyRange>& pieces) {
  if (from.type != kDLCPU) return {};
  const std::optional<Device> pinned = memory.find_pinned(to);
  const bool needs_none =
      !pinned || std::all_of(pieces.begin(), pieces.end(), [&](const CopyRange& piece) {
        return memory.is_pinned(piece.source);
      });
  return needs_none ? std::nullopt : pinned;
}

/// Fills `block` with what `pieces` have from `start` to `end`: one thread alone is slower than the
/// bus that the block goes over.
void fill_block(uint8_t* block, int64_t start, int64_t end, const std::vector<CopyRange>& pieces) {
  constexpr int64_t kShare = int64_t{512} << 10;
  parallel_for((end - start + kShare - 1) / kShare, [&](int64_t i) noexcept {
    const int64_t first = start + i * kShare;
    const auto copy = [&](int64_t position, const uint8_t* source, int64_t n) {
      std::memcpy(block + (position - start), source, static_cast<std::size_t>(n));
    };
    for_each_part(pieces, first, std::min(end, first + kShare), copy);
  });
}

/// Block by block, so that the next one is filled while the last ones are on their way.
void copy_staged(StreamWork& transfer, const Device& pinned, const Device& to, uint8_t* target,
                 const std::vector<CopyRange>& pieces) {
  MemoryOps& memory = transfer.memory();
  const StreamHandle stream = transfer.stream();
  const int64_t size = pieces.back().position + pieces.back().size;
  for (int64_t start = 0; start < size; start += StagingPool::kMaxBlock) {
    const int64_t end = std::min(size, start + StagingPool::kMaxBlock);
    const std::shared_ptr<uint8_t> block = StagingPool::get().take(memory, pinned, end - start);
    if (block == nullptr) {
      for_each_part(pieces, start, end, [&](int64_t position, const uint8_t* source, int64_t n) {
        memory.copy(to, target + position, Device{}, source, n, stream);
      });
      continue;
    }
    transfer.hold(block);
    fill_block(block.get(), start, end, pieces);
    memory.copy(to, target + start, pinned, block.get(), end - start, stream);
    if (end < size) transfer.release_last();
  }
}

}  // namespace

void copy_ranges(StreamWork& transfer, const Device& from, const Device& to, uint8_t* target,
                 const std::vector<CopyRange>& pieces, bool pin) {
  if (pieces.empty()) return;
  MemoryOps& memory = transfer.memory();
  const auto staging = pin ? find_staging(memory, from, to, pieces) : std::nullopt;
  if (staging) {
    copy_staged(transfer, *staging, to, target, pieces);
    return;
  }
  for (const CopyRange& piece : pieces) {
    memory.copy(to, target + piece.position, from, piece.source, piece.size, transfer.stream());
  }
}

}  // namespace arrowdl
