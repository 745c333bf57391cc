// Copies ranges of memory to a device, by way of pinned memory where that is faster.
#include "copy/copy_ranges.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "copy/staging_pool.hpp"
#include "util/parallel_for.hpp"

ARROWDL_BEGIN_NAMESPACE
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
/// than the bus to the device. Beside an H200, waking more than three took longer than it saved,
/// and blocks of 256 KiB to 1 MiB, for the processor's cache, had half the bandwidth.
void fill_block(uint8_t* block, int64_t start, int64_t end, const std::vector<CopyRange>& ranges) {
  constexpr int64_t kShare = int64_t{512} << 10;
  constexpr int64_t kThreads = 3;
  const auto fill_share = [&](int64_t i) noexcept {
    const int64_t first = start + i * kShare;
    const auto copy = [&](int64_t offset, const uint8_t* source, int64_t n) {
      std::memcpy(block + (offset - start), source, static_cast<std::size_t>(n));
    };
    for_each_part(ranges, first, std::min(end, first + kShare), copy);
  };
  parallel_for((end - start + kShare - 1) / kShare, fill_share, kThreads);
}

/// Copies `size` bytes on several threads.
void copy_parallel(uint8_t* target, const uint8_t* source, int64_t size) {
  constexpr int64_t kShare = int64_t{512} << 10;
  parallel_for((size + kShare - 1) / kShare, [&](int64_t i) noexcept {
    const int64_t first = i * kShare;
    std::memcpy(target + first, source + first,
                static_cast<std::size_t>(std::min(kShare, size - first)));
  });
}

/// Pinned blocks that a device fills in turn, while the host empties those that are full.
class BlockRing {
 public:
  static constexpr std::size_t kBlocks = 3;

  /// `work` keeps the blocks. Takes one at least, if there is any.
  BlockRing(StreamWork& work, const Device& device, const Device& pinned, int64_t size)
      : work_(work), device_(device) {
    for (std::size_t i = 0; i < kBlocks; ++i) {
      const int64_t left = size - static_cast<int64_t>(i) * StagingPool::kMaxBlock;
      if (left <= 0) break;
      const Wait wait = i == 0 ? Wait::kYes : Wait::kNo;
      auto block = StagingPool::get().take(work.memory(), pinned,
                                           std::min(left, StagingPool::kMaxBlock), wait);
      if (block == nullptr) break;
      work.hold(block);
      blocks_.push_back({block.get(), 0, 0, {}});
    }
  }

  bool empty() const noexcept { return blocks_.empty(); }

  /// The next block, for the bytes from `start` to `end`. Copies what it held to `target` first.
  uint8_t* begin(int64_t start, int64_t end, uint8_t* target) {
    Block& block = blocks_[next_];
    drain(block, target);
    block.start = start;
    block.end = end;
    return block.address;
  }
  /// The copies into that block are on the stream.
  void finish() {
    blocks_[next_].filled = work_.record();
    next_ = (next_ + 1) % blocks_.size();
  }
  void drain_all(uint8_t* target) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      drain(blocks_[(next_ + i) % blocks_.size()], target);
    }
  }

 private:
  struct Block {
    uint8_t* address;
    int64_t start;
    int64_t end;
    OwnedEvent filled;
  };

  void drain(Block& block, uint8_t* target) const {
    if (block.end == block.start) return;
    synchronize_event(device_, block.filled.handle());
    copy_parallel(target + block.start, block.address, block.end - block.start);
    block.end = block.start;
  }

  StreamWork& work_;
  const Device device_;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;
};

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

void copy_ranges_to_host(StreamWork& work, const Device& from, uint8_t* target,
                         const std::vector<CopyRange>& ranges, bool pin) {
  if (ranges.empty()) return;
  MemoryOps& memory = work.memory();
  const std::optional<Device> pinned = pin ? memory.find_pinned(from) : std::nullopt;
  const int64_t size = ranges.back().offset + ranges.back().size;
  std::optional<BlockRing> ring;
  if (pinned) ring.emplace(work, from, *pinned, size);
  if (!ring || ring->empty()) {
    copy_ranges(work, from, Device{}, target, ranges, false);
    work.wait();
    return;
  }
  for (int64_t start = 0; start < size; start += StagingPool::kMaxBlock) {
    const int64_t end = std::min(size, start + StagingPool::kMaxBlock);
    uint8_t* const block = ring->begin(start, end, target);
    for_each_part(ranges, start, end, [&](int64_t offset, const uint8_t* source, int64_t n) {
      memory.copy(*pinned, block + (offset - start), from, source, n, work.stream());
    });
    ring->finish();
  }
  ring->drain_all(target);
}

ARROWDL_END_NAMESPACE
