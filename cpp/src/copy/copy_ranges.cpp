// Copies ranges of memory to a device, by way of pinned memory where that is faster.
#include "copy/copy_ranges.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include "copy/staging_pool.hpp"
#include "util/copy_bytes.hpp"
#include "util/parallel_for.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Calls `use(offset, source, size)` for the parts of `ranges` from `start` to `end`.
template <typename Use>
void for_each_part(const std::vector<CopyRange>& ranges, int64_t start, int64_t end,
                   const Use& use) {
  const auto ends_before = [](const CopyRange& range, int64_t at) {
    return range.offset + range.size <= at;
  };
  auto range = std::lower_bound(ranges.begin(), ranges.end(), start, ends_before);
  for (; range != ranges.end() && range->offset < end; ++range) {
    const int64_t first = std::max(start, range->offset);
    const int64_t last = std::min(end, range->offset + range->size);
    if (first >= last) continue;
    use(first, static_cast<const uint8_t*>(range->source) + (first - range->offset), last - first);
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

std::atomic<int64_t> staged{0};

/// Joins ranges that lie in one block of pinned memory as they do in the target.
std::vector<CopyRange> join_ranges(MemoryOps& memory, const std::vector<CopyRange>& ranges) {
  constexpr int64_t kMostBetween = 64;
  std::vector<CopyRange> joined;
  for (const CopyRange& range : ranges) {
    CopyRange* const last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && range.offset - last->offset - last->size <= kMostBetween &&
        static_cast<const uint8_t*>(last->source) + (range.offset - last->offset) == range.source &&
        memory.are_of_one_block(last->source, range.source)) {
      last->size = range.offset + range.size - last->offset;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
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
    copy_bytes(target + block.start, block.address, block.end - block.start);
    block.end = block.start;
  }

  StreamWork& work_;
  const Device device_;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;
};

/// Pinned blocks that several threads fill, for the bytes of `ranges` from `start` on. One thread
/// is slower than the bus to the device; where all waited for each block, the device waited with
/// them.
class FilledBlocks {
 public:
  static constexpr std::size_t kMostBlocks = 4;

  /// Takes one block at least, if there is any. `work` releases them when they are copied.
  FilledBlocks(StreamWork& work, const Device& pinned, const std::vector<CopyRange>& ranges,
               int64_t start)
      : work_(work), pinned_(pinned), ranges_(ranges), start_(start), end_(start) {
    const int64_t size = ranges.back().offset + ranges.back().size;
    while (end_ < size && count_ < kMostBlocks) {
      const int64_t end = std::min(size, end_ + StagingPool::kMaxBlock);
      const Wait wait = count_ == 0 ? Wait::kYes : Wait::kNo;
      auto block = StagingPool::get().take(work.memory(), pinned, end - end_, wait);
      if (block == nullptr) break;
      if (end == size) work.hold(block);  // until all is done: no event of its own
      blocks_[count_++] = std::move(block);
      end_ = end;
    }
    last_is_held_ = end_ == size;
  }
  ~FilledBlocks() {
    while (released_ < count_) release_next();
  }
  FilledBlocks(const FilledBlocks&) = delete;
  FilledBlocks& operator=(const FilledBlocks&) = delete;

  int64_t end() const noexcept { return end_; }

  /// Fills the blocks, and copies each part to `target` on `to` as soon as it is full.
  void copy(const Device& to, uint8_t* target) {
    const auto caller = std::this_thread::get_id();
    std::exception_ptr error;
    const auto fill_share = [&](int64_t i) noexcept {
      fill(i);
      is_full_[static_cast<std::size_t>(i)].store(true, std::memory_order_release);
      if (std::this_thread::get_id() != caller || error != nullptr) return;
      try {
        copy_full(to, target);
      } catch (...) {
        error = std::current_exception();
      }
    };
    parallel_for(share_count(), fill_share, std::max<int64_t>(2, (end_ - start_) / kPerThread));
    if (error != nullptr) std::rethrow_exception(error);
    copy_full(to, target);
  }

 private:
  /// The bytes that one thread copies at a time; such a copy has nearly the whole bandwidth.
  static constexpr int64_t kShare = int64_t{256} << 10;
  /// More than two threads are not woken for less: it takes longer than it saves.
  static constexpr int64_t kPerThread = int64_t{2} << 20;
  static constexpr int64_t kSharesOfBlock = StagingPool::kMaxBlock / kShare;

  int64_t share_count() const noexcept { return (end_ - start_ + kShare - 1) / kShare; }
  uint8_t* address(int64_t share) const noexcept {
    const std::shared_ptr<uint8_t>& block =
        blocks_[static_cast<std::size_t>(share / kSharesOfBlock)];
    return block.get() + share % kSharesOfBlock * kShare;
  }

  void fill(int64_t share) noexcept {
    const int64_t first = start_ + share * kShare;
    uint8_t* const memory = address(share);
    for_each_part(ranges_, first, std::min(end_, first + kShare),
                  [&](int64_t offset, const uint8_t* source, int64_t n) {
                    std::memcpy(memory + (offset - first), source, static_cast<std::size_t>(n));
                  });
  }

  /// Copies the next shares that are full, at once where they are in one block.
  void copy_full(const Device& to, uint8_t* target) {
    const int64_t count = share_count();
    while (next_share_ < count) {
      const int64_t first = next_share_;
      const int64_t last = std::min(count, (first / kSharesOfBlock + 1) * kSharesOfBlock);
      while (next_share_ < last &&
             is_full_[static_cast<std::size_t>(next_share_)].load(std::memory_order_acquire)) {
        ++next_share_;
      }
      if (next_share_ == first) return;
      const int64_t offset = start_ + first * kShare;
      work_.memory().copy(to, target + offset, pinned_, address(first),
                          std::min(end_, start_ + next_share_ * kShare) - offset, work_.stream());
      if (next_share_ == last) release_next();
    }
  }

  void release_next() noexcept {
    std::shared_ptr<uint8_t> block = std::move(blocks_[released_++]);
    if (released_ < count_ || !last_is_held_) work_.release(std::move(block));
  }

  StreamWork& work_;
  const Device pinned_;
  const std::vector<CopyRange>& ranges_;
  const int64_t start_;
  int64_t end_;
  std::array<std::shared_ptr<uint8_t>, kMostBlocks> blocks_;
  std::array<std::atomic<bool>, kMostBlocks * kSharesOfBlock> is_full_{};
  std::size_t count_ = 0;
  std::size_t released_ = 0;
  int64_t next_share_ = 0;  ///< the first share that is not being copied
  bool last_is_held_ = false;
};

void copy_staged(StreamWork& work, const Device& pinned, const Device& to, uint8_t* target,
                 const std::vector<CopyRange>& ranges) {
  const int64_t size = ranges.back().offset + ranges.back().size;
  staged.fetch_add(size, std::memory_order_relaxed);
  for (int64_t start = 0; start < size;) {
    FilledBlocks blocks(work, pinned, ranges, start);
    if (blocks.end() > start) {
      blocks.copy(to, target);
      start = blocks.end();
      continue;
    }
    const int64_t end = std::min(size, start + StagingPool::kMaxBlock);
    for_each_part(ranges, start, end, [&](int64_t offset, const uint8_t* source, int64_t n) {
      work.memory().copy(to, target + offset, Device{}, source, n, work.stream());
    });
    start = end;
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
  for (const CopyRange& range : from.type == kDLCPU ? join_ranges(memory, ranges) : ranges) {
    memory.copy(to, target + range.offset, from, range.source, range.size, work.stream());
  }
}

int64_t staged_bytes() noexcept { return staged.load(std::memory_order_relaxed); }

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
