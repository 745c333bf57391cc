// Keeps pinned blocks for reuse, and bounds their size.
#include "copy/staging_pool.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "arrowdl/backends.hpp"
#include "arrowdl/deferred_release.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "sync/release_thread.hpp"
#include "util/fork.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The interval at which a waiting copy checks again, since a lost block sends no notification.
constexpr std::chrono::milliseconds kLongestWait{1};
/// The longest wait for blocks in use. If they never return, since the device fails or the process
/// ends, copies go on without pinned memory.
constexpr std::chrono::seconds kPatience{5};

int64_t round_up(int64_t size) noexcept {
  int64_t block = StagingPool::kMinBlock;
  while (block < size) block *= 2;
  return block;
}

/// For arrays: batches of about one size share blocks.
int64_t round_up_large(int64_t size) {
  constexpr int64_t kStep = StagingPool::kMaxBlock;
  if (size > INT64_MAX - kStep) raise_value_error("cannot allocate ", size, " bytes");
  return (size + kStep - 1) / kStep * kStep;
}

}  // namespace

struct StagingPool::Block {
  Block(MemoryOps& memory, const Device& device, int64_t bytes)
      : allocation(memory, device, bytes, {}), size(bytes) {}

  DeviceAllocation allocation;
  const int64_t size;
};

StagingPool& StagingPool::get() { return of_this_process<StagingPool>(); }

std::shared_ptr<uint8_t> StagingPool::take(MemoryOps& memory, const Device& device, int64_t size,
                                           Wait wait) {
  const int64_t bytes = round_up(size);
  OwnedBlock block;
  const auto is_served = [&] {
    block = find_idle(device, bytes);
    return block != nullptr || reserve(bytes, wait);
  };
  bool served = is_served();
  if (!served && wait == Wait::kYes) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    wait_guarded([&](const Waiting& waiting) {
      while (!(served = is_served()) && std::chrono::steady_clock::now() < end) {
        wait_for_change(waiting);
      }
    });
  }
  if (!served) return nullptr;
  return share(block != nullptr ? std::move(block) : allocate(memory, device, bytes),
               &StagingPool::give);
}

std::shared_ptr<uint8_t> StagingPool::share(OwnedBlock block, Return back) {
  if (block == nullptr) return nullptr;
  const auto give_back = [this, back, process = fork_count()](Block* own) {
    if (process == fork_count()) (this->*back)(OwnedBlock(own));  // a child leaves it to its parent
  };
  const std::shared_ptr<Block> shared(block.release(), give_back);
  return {shared, shared->allocation.address()};
}

std::shared_ptr<uint8_t> StagingPool::lend(MemoryOps& memory, const Device& device, int64_t size) {
  const int64_t bytes = size <= kMaxBlock ? round_up(size) : round_up_large(size);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.reserve(count_ + lent_ + 1);
    large_.reserve(large_.size() + lent_ + 1);
    ++lent_;
  }
  OwnedBlock block = find_idle(device, bytes);
  const bool is_reused = block != nullptr;
  try {
    if (!is_reused) block = std::make_unique<Block>(memory, device, bytes);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    --lent_;
    throw;
  }
  if (is_reused && bytes <= kMaxBlock) forget(bytes);
  return share(std::move(block), &StagingPool::take_back);
}

std::shared_ptr<uint8_t> StagingPool::find_for(const Device& to, int64_t size, bool is_counted,
                                               Device* at) {
  Backend* const backend = find_backend(to.type);
  MemoryOps* const memory = backend == nullptr ? nullptr : backend->memory();
  const auto pinned = memory == nullptr ? std::nullopt : memory->find_pinned(to);
  if (!pinned) return nullptr;
  *at = *pinned;
  try {
    return is_counted ? take(*memory, *at, size, Wait::kNo) : lend(*memory, *at, size);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    return nullptr;
  }
}

/// Keeps the block for copies and other arrays. Frees what the limits do not allow where no thread
/// waits.
void StagingPool::take_back(OwnedBlock block) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    --lent_;
    if (block->size <= kMaxBlock && block->size <= limit_ - bytes_) {
      ++count_;
      bytes_ += block->size;
      idle_.push_back(std::move(block));
      changed_.notify_all();
      return;
    }
    if (block->size > kMaxBlock && block->size / kLimits <= limit_) {
      large_bytes_ += block->size;
      large_.push_back(std::move(block));
    }
  }
  for (; block != nullptr || (block = drop_large()) != nullptr; block.reset()) {
    try {
      Release release{nullptr, std::move(block), 0};
      ReleaseThread::get().take(release);
    } catch (...) {  // no memory to defer it: freed here
    }
  }
}

/// Takes out the large block that has been idle for longest, if there are too many.
StagingPool::OwnedBlock StagingPool::drop_large() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (large_bytes_ / kLimits <= limit_) return nullptr;
  OwnedBlock block = std::move(large_.front());
  large_.erase(large_.begin());
  large_bytes_ -= block->size;
  return block;
}

/// A block of `size` bytes that is not in use.
StagingPool::OwnedBlock StagingPool::find_idle(const Device& device, int64_t size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<OwnedBlock>& blocks = size > kMaxBlock ? large_ : idle_;
  const auto found = std::find_if(blocks.rbegin(), blocks.rend(), [&](const OwnedBlock& block) {
    return block->size == size && block->allocation.device() == device;
  });
  if (found == blocks.rend()) return nullptr;
  OwnedBlock block = std::move(*found);
  blocks.erase(std::next(found).base());
  if (size > kMaxBlock) large_bytes_ -= size;
  return block;
}

StagingPool::OwnedBlock StagingPool::allocate(MemoryOps& memory, const Device& device,
                                              int64_t size) {
  try {
    return std::make_unique<Block>(memory, device, size);
  } catch (const Error& error) {
    forget(size);
    if (error.kind() != ErrorKind::kMemory) throw;
    return nullptr;
  } catch (...) {
    forget(size);
    throw;
  }
}

/// Whether the limit allows another block of `size` bytes. If so, counts the block, and the caller
/// allocates it.
bool StagingPool::reserve(int64_t size, Wait wait) {
  // Without pending releases, each block is being filled by a thread, or is lost with its device:
  // a caller that has none would wait in vain.
  const bool may_refuse = wait == Wait::kNo || pending_releases() > 0;
  if (wait == Wait::kYes) make_room(size);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes_ > 0 && may_refuse && bytes_ + size > limit_) return false;
  idle_.reserve(count_ + lent_ + 1);
  ++count_;
  bytes_ += size;
  return true;
}

/// Takes out idle blocks, the least recently used first, until the limit allows `size` more bytes.
std::vector<StagingPool::OwnedBlock> StagingPool::make_room(int64_t size) {
  std::vector<OwnedBlock> dropped;
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!idle_.empty() && bytes_ + size > limit_) {
    dropped.push_back(std::move(idle_.front()));
    idle_.erase(idle_.begin());
    bytes_ -= dropped.back()->size;
    --count_;
  }
  return dropped;
}

void StagingPool::wait_for_change(const Waiting& waiting) {
  std::unique_lock<std::mutex> lock(mutex_);
  waiting.wait_for(changed_, lock, kLongestWait);
}

void StagingPool::forget(int64_t size) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_ -= size;
  --count_;
  changed_.notify_all();
}

void StagingPool::give(OwnedBlock block) noexcept {
  const int64_t size = block->size;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes_ <= limit_) idle_.push_back(std::move(block));
    changed_.notify_all();
  }
  if (block == nullptr) return;
  block.reset();
  forget(size);
}

void StagingPool::set_limit(int64_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    limit_ = bytes;
    changed_.notify_all();
  }
  make_room(0);
  while (drop_large() != nullptr) {
  }
}

int64_t StagingPool::limit() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return limit_;
}

int64_t StagingPool::bytes() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_ + large_bytes_;
}

BufferArena make_pinned_arena(const std::optional<Device>& to, std::size_t columns, int64_t bytes) {
  constexpr int64_t kPaddingOfColumn = 256;  // of its data and its bitmaps
  StagingPool& pool = StagingPool::get();
  const int64_t size = bytes + static_cast<int64_t>(columns + 4) * kPaddingOfColumn;
  Device at;
  std::shared_ptr<uint8_t> block;
  if (to && bytes >= StagingPool::kMinBlock && size <= pool.limit() / StagingPool::kLimits) {
    block = pool.find_for(*to, size, size <= StagingPool::kMaxBlock, &at);
  }
  if (block != nullptr && !require_memory(at, "copy").is_pinned(block.get())) block = nullptr;
  return BufferArena(std::move(block), size);
}

void set_staging_limit(int64_t bytes) {
  if (bytes < 0) raise_value_error("a staging limit of ", bytes, " bytes: pass 0 or more");
  StagingPool::get().set_limit(bytes);
}

int64_t staging_limit() noexcept { return StagingPool::get().limit(); }

int64_t staging_bytes() noexcept { return StagingPool::get().bytes(); }

ARROWDL_END_NAMESPACE
