// Copies ranges of memory to a device, by way of pinned memory where that is faster.
#include "copy/copy_ranges.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
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

/// Copies to a device by way of pinned blocks, on several threads: one is slower than the bus.
/// Blocks are so small that the processor's cache holds those that are in turn, and the device
/// reads them from there.
class StagedCopy {
 public:
  StagedCopy(StreamWork& work, const Device& pinned, const Device& to, uint8_t* target,
             const std::vector<CopyRange>& ranges)
      : work_(work),
        pinned_(pinned),
        to_(to),
        target_(target),
        ranges_(ranges),
        size_(ranges.back().offset + ranges.back().size) {}
  ~StagedCopy() {
    for (Block& block : blocks_) work_.hold(std::move(block.memory));
  }
  StagedCopy(const StagedCopy&) = delete;
  StagedCopy& operator=(const StagedCopy&) = delete;

  void run() {
    const int64_t count = (size_ + kBlock - 1) / kBlock;
    const auto most_blocks = static_cast<std::size_t>(count);
    blocks_.reserve(most_blocks);
    left_.reserve(most_blocks);
    parallel_for(
        count, [&](int64_t i) noexcept { copy_now(i); },
        std::clamp<int64_t>(size_ / kBytesPerThread, 1, kMostThreads));
    if (error_ != nullptr) std::rethrow_exception(error_);
    for (const int64_t i : left_) {
      wait_for_block();
      copy(i, take(Wait::kYes));
    }
  }

 private:
  static constexpr int64_t kBlock = int64_t{512} << 10;
  /// Those of the bus: more threads do not help.
  static constexpr int64_t kMostThreads = 4;
  /// What takes longer to copy than a thread takes to wake up.
  static constexpr int64_t kBytesPerThread = int64_t{1} << 20;

  struct Block {
    std::shared_ptr<uint8_t> memory;
    OwnedEvent copied;
  };

  /// Copies part `i`, or leaves it if no block is free, since helper threads may not wait.
  void copy_now(int64_t i) noexcept {
    try {
      Block block = take(Wait::kNo);
      if (block.memory != nullptr) return copy(i, std::move(block));
      const std::lock_guard<std::mutex> lock(mutex_);
      left_.push_back(i);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      error_ = std::current_exception();
    }
  }

  /// A block of this copy that the device has read, or another one of the pool.
  Block take(Wait wait) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (error_ != nullptr) return {};
      // The stream is done with the first one first. One without an event had an error.
      if (next_ < blocks_.size() && blocks_[next_].copied &&
          is_complete(to_, blocks_[next_].copied.handle())) {
        return std::move(blocks_[next_++]);
      }
    }
    return {StagingPool::get().take(work_.memory(), pinned_, std::min(size_, kBlock), wait), {}};
  }

  /// Before a block of the pool is waited for, which other copies have.
  void wait_for_block() const {
    if (next_ < blocks_.size()) synchronize_event(to_, blocks_[next_].copied.handle());
  }

  /// Copies part `i` by way of `block`, or without one if there is none.
  void copy(int64_t i, Block block) {
    const int64_t start = i * kBlock;
    const int64_t end = std::min(size_, start + kBlock);
    if (block.memory == nullptr) {
      for_each_part(ranges_, start, end, [&](int64_t offset, const uint8_t* source, int64_t n) {
        work_.memory().copy(to_, target_ + offset, Device{}, source, n, work_.stream());
      });
      return;
    }
    for_each_part(ranges_, start, end, [&](int64_t offset, const uint8_t* source, int64_t n) {
      std::memcpy(block.memory.get() + (offset - start), source, static_cast<std::size_t>(n));
    });
    const auto keep = [&] {
      const std::lock_guard<std::mutex> lock(mutex_);
      blocks_.push_back(std::move(block));
    };
    try {
      work_.memory().copy(to_, target_ + start, pinned_, block.memory.get(), end - start,
                          work_.stream());
      block.copied = work_.record();
    } catch (...) {
      keep();
      throw;
    }
    keep();
  }

  StreamWork& work_;
  const Device pinned_;
  const Device to_;
  uint8_t* const target_;
  const std::vector<CopyRange>& ranges_;
  const int64_t size_;
  std::mutex mutex_;
  std::vector<Block> blocks_;  ///< in the order of their copies: one for each part that is copied
  std::size_t next_ = 0;       ///< the first one that has not been taken again
  std::vector<int64_t> left_;  ///< parts for which there was no block
  std::exception_ptr error_;
};

}  // namespace

void copy_ranges(StreamWork& work, const Device& from, const Device& to, uint8_t* target,
                 const std::vector<CopyRange>& ranges, bool pin) {
  if (ranges.empty()) return;
  MemoryOps& memory = work.memory();
  const auto staging = pin ? find_staging(memory, from, to, ranges) : std::nullopt;
  if (staging) {
    StagedCopy(work, *staging, to, target, ranges).run();
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
