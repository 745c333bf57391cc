// Allocates aligned host memory, and keeps freed blocks for reuse.
#include "memory/aligned_alloc.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "util/sanitizers.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr std::size_t kAlignment = 64;

/// The smallest size that is worth reusing: malloc takes some 0.5 us for an aligned block, and
/// returns blocks of 128 KiB and more to the system, which clears them before reuse.
constexpr std::size_t kKeptSize = std::size_t{512};
/// Columns of small batches, which are many, are kept apart from larger blocks.
constexpr std::size_t kLargeSize = std::size_t{4} << 10;
/// The limit for each kind of blocks: a few times the unused ones of a shuffle of short rows.
constexpr std::size_t kKeptBytes = std::size_t{32} << 20;
/// While at least as much is in use: a shuffle of long rows frees one block of rows as it fills the
/// next. At its end the rest is given back.
constexpr std::size_t kMostKeptBytes = std::size_t{256} << 20;
constexpr std::size_t kKeptBlocks = 256;

/// Clearing 64 MiB takes 53 ms in small pages and 15 ms in huge ones.
constexpr std::size_t kHugeSize = std::size_t{4} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Blocks have few different sizes, up to an eighth larger than what was asked for.
std::size_t round_up(std::size_t size) {
  std::size_t step = kAlignment;
  if (size >= kKeptSize) {
    while (step * 16 <= size) step *= 2;
  }
  return (size / step + 1) * step;
}

std::align_val_t choose_alignment(std::size_t rounded) {
  return static_cast<std::align_val_t>(rounded < kHugeSize ? kAlignment : kHugePage);
}

void* allocate_fresh(std::size_t rounded) noexcept {
  void* block = ::operator new(rounded, choose_alignment(rounded), std::nothrow);
#if defined(__linux__)
  // Advice: a failure costs only time.
  if (block != nullptr && rounded >= kHugeSize) madvise(block, rounded, MADV_HUGEPAGE);
#endif
  return block;
}

void free_fresh(void* block, std::size_t rounded) noexcept {
  ::operator delete(block, choose_alignment(rounded));
}

class BlockCache {
 public:
  /// Counts a block that was made, or taken out.
  void lend(std::size_t size) noexcept { lent_.fetch_add(size, std::memory_order_relaxed); }

  void* take(std::size_t size) noexcept {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr;  // in a forked child, a missing thread may hold it forever
    for (std::size_t i = count_; i-- > 0;) {
      if (blocks_[i].size == size) return remove(i);
    }
    return nullptr;
  }

  void put(void* address, std::size_t size) noexcept {
    const std::size_t lent = lent_.fetch_sub(size, std::memory_order_relaxed) - size;
    const std::size_t limit = std::clamp(lent, kKeptBytes, kMostKeptBytes);
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock) return free_fresh(address, size);
    // The oldest goes.
    while (count_ > 0 && (count_ == kKeptBlocks || bytes_ + size > limit)) {
      const Block oldest = blocks_[0];
      free_fresh(remove(0), oldest.size);
    }
    if (size > limit) return free_fresh(address, size);
    bytes_ += size;
    blocks_[count_++] = {address, size};
  }

 private:
  struct Block {
    void* address;
    std::size_t size;
  };

  void* remove(std::size_t i) noexcept {
    const Block block = blocks_[i];
    bytes_ -= block.size;
    std::copy(blocks_.begin() + i + 1, blocks_.begin() + count_--, blocks_.begin() + i);
    return block.address;
  }

  std::mutex mutex_;
  std::array<Block, kKeptBlocks> blocks_{};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  std::atomic<std::size_t> lent_{0};
};

/// Never destroyed, for blocks that are freed after everything else.
BlockCache& cache(std::size_t rounded) noexcept {
  using Caches = std::array<BlockCache, 2>;
  alignas(Caches) static std::array<std::byte, sizeof(Caches)> storage;
  static Caches& caches = *new (storage.data()) Caches;
  return caches[rounded < kLargeSize ? 0 : 1];
}

/// AddressSanitizer has to see reads of freed memory.
constexpr bool kKeeps = !ARROWDL_HAS_ASAN;

bool is_kept(std::size_t rounded) { return kKeeps && rounded >= kKeptSize; }

}  // namespace

void* allocate_aligned(std::size_t size) noexcept {
  const std::size_t rounded = round_up(size);
  if (!is_kept(rounded)) return allocate_fresh(rounded);
  void* block = cache(rounded).take(rounded);
  if (block == nullptr) block = allocate_fresh(rounded);
  if (block != nullptr) cache(rounded).lend(rounded);
  return block;
}

void free_aligned(void* block, std::size_t size) noexcept {
  const std::size_t rounded = round_up(size);
  if (is_kept(rounded)) {
    cache(rounded).put(block, rounded);
  } else {
    free_fresh(block, rounded);
  }
}

ARROWDL_END_NAMESPACE
