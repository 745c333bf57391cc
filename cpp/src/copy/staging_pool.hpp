// Pinned memory through which pageable host memory is copied to devices.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "arrowdl/copy.hpp"
#include "arrowdl/wait.hpp"
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

  /// The pool of this process.
  static StagingPool& get();

  /// `size` bytes, kMaxBlock at most, of `device`, a `find_pinned` of `memory`. The last owner
  /// returns them to the pool, and must make sure that nothing uses them then. While other copies
  /// use all blocks that the limit allows, the host waits for some seconds. nullptr after that, or
  /// at once with Wait::kNo, of callers that have a block, and if the runtime has no memory.
  std::shared_ptr<uint8_t> take(MemoryOps& memory, const Device& device, int64_t size,
                                Wait wait = Wait::kYes);

  /// `size` bytes of `device` for an array, which may keep them for long: they do not count against
  /// the limit until its last owner, on any thread, returns them. Above the limit they are freed
  /// then, on the release thread, since that can wait for the device. Raises MemoryError.
  std::shared_ptr<uint8_t> lend(MemoryOps& memory, const Device& device, int64_t size);

  void set_limit(int64_t bytes);
  int64_t limit() noexcept;
  int64_t bytes() noexcept;

 private:
  struct Block;
  using OwnedBlock = std::unique_ptr<Block>;

  std::shared_ptr<uint8_t> share(OwnedBlock block);
  OwnedBlock find_idle(const Device& device, int64_t size);
  OwnedBlock allocate(MemoryOps& memory, const Device& device, int64_t size);
  bool reserve(int64_t size, Wait wait);
  std::vector<OwnedBlock> make_room(int64_t size);
  void wait_for_change(const Waiting& waiting);
  void forget(int64_t size) noexcept;
  void give(OwnedBlock block) noexcept;
  void take_back(OwnedBlock block) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OwnedBlock> idle_;  ///< most recently used last; has capacity for every block
  std::size_t count_ = 0;         ///< number of blocks, those in use included
  int64_t bytes_ = 0;             ///< their size
  std::size_t lent_ = 0;          ///< number of blocks that arrays have, which are not among them
  int64_t limit_ = kDefaultStagingLimit;
};

ARROWDL_END_NAMESPACE
