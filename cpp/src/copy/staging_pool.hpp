// Pinned memory through which pageable host memory is copied to devices.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "arrowdl/copy.hpp"
#include "arrowdl/wait.hpp"
#include "memory/buffer_arena.hpp"
#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Whether a call may wait on the host for others to return memory.
enum class Wait { kYes, kNo };

/// Blocks of pinned memory of any device. Copies reuse them, since pinning takes longer than many
/// copies. Bounded as `set_staging_limit` says. Blocks that are left at exit are not freed.
class StagingPool {
 public:
  static constexpr int64_t kMinBlock = int64_t{64} << 10;
  /// Large enough for the full bandwidth, and small enough that the host fills a block while
  /// earlier ones are copied.
  static constexpr int64_t kMaxBlock = int64_t{4} << 20;
  static constexpr int64_t kLimits = 4;

  /// The pool of this process.
  static StagingPool& get();

  /// `size` bytes, kMaxBlock at most, of `device`, a `find_pinned` of `memory`. The last owner
  /// returns them to the pool, and must make sure that nothing uses them then. While other copies
  /// use all blocks that the limit allows, the host waits for some seconds. nullptr after that, or
  /// at once with Wait::kNo, of callers that have a block, and if the runtime has no memory.
  std::shared_ptr<uint8_t> take(MemoryOps& memory, const Device& device, int64_t size,
                                Wait wait = Wait::kYes);

  /// `size` bytes of `device` for an array, which may keep them for long: they do not count against
  /// the limit until its last owner, on any thread, returns them. What the pool does not keep is
  /// freed on the release thread, since that can wait for the device: of blocks above kMaxBlock,
  /// which copies do not use, it keeps kLimits times the limit. Raises MemoryError.
  std::shared_ptr<uint8_t> lend(MemoryOps& memory, const Device& device, int64_t size);

  /// `size` bytes of pinned memory for copies to `to`, `*at` its device: by `take` without a wait
  /// if they count against the limit, else by `lend`. nullptr if the runtime has none.
  std::shared_ptr<uint8_t> find_for(const Device& to, int64_t size, bool is_counted, Device* at);

  void set_limit(int64_t bytes);
  int64_t limit() noexcept;
  int64_t bytes() noexcept;

 private:
  struct Block;
  using OwnedBlock = std::unique_ptr<Block>;

  using Return = void (StagingPool::*)(OwnedBlock) noexcept;

  std::shared_ptr<uint8_t> share(OwnedBlock block, Return back);
  OwnedBlock find_idle(const Device& device, int64_t size);
  OwnedBlock allocate(MemoryOps& memory, const Device& device, int64_t size);
  bool reserve(int64_t size, Wait wait);
  std::vector<OwnedBlock> make_room(int64_t size);
  void wait_for_change(const Waiting& waiting);
  void forget(int64_t size) noexcept;
  void give(OwnedBlock block) noexcept;
  void take_back(OwnedBlock block) noexcept;
  OwnedBlock drop_large() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OwnedBlock> idle_;   ///< most recently used last; has capacity for every block
  std::vector<OwnedBlock> large_;  ///< above kMaxBlock, the same
  int64_t large_bytes_ = 0;
  std::size_t count_ = 0;  ///< number of blocks, those in use included
  int64_t bytes_ = 0;      ///< their size
  std::size_t lent_ = 0;   ///< number of blocks that arrays have, which are not among them
  int64_t limit_ = kDefaultStagingLimit;
};

/// Pinned memory for rows of `columns` columns and `bytes` bytes that are gathered on this thread,
/// and copied to `to` from where they are. Empty where that saves no copy, and if the limit of the
/// pool does not allow it.
BufferArena make_pinned_arena(const std::optional<Device>& to, std::size_t columns, int64_t bytes);

ARROWDL_END_NAMESPACE
