// Pinned memory that bytes of the host pass through on their way to a device.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "arrowdl/copy.hpp"
#include "arrowdl/wait.hpp"
#include "sync/stream_work.hpp"

namespace arrowdl {

/// Blocks of pinned memory of any device, kept to be used again: pinning takes longer than many
/// copies do. Bounded as `set_staging_limit` says. What is left at exit goes with the process.
class StagingPool {
 public:
  static constexpr int64_t kMinBlock = int64_t{64} << 10;
  /// Enough for the full bandwidth, and what the host fills while earlier blocks are on their way.
  static constexpr int64_t kMaxBlock = int64_t{4} << 20;

  /// That of this process.
  static StagingPool& get();

  /// `size` bytes, kMaxBlock at most, of `device`, a `find_pinned` of `memory`. They are back in
  /// the pool when the last owner is gone, who sees to it that nothing uses them then. Waits on the
  /// host while others have all that there may be, for some seconds. nullptr then, and where the
  /// runtime has no more.
  std::shared_ptr<uint8_t> take(MemoryOps& memory, const Device& device, int64_t size);

  void set_limit(int64_t bytes);
  int64_t limit() noexcept;
  int64_t bytes() noexcept;

 private:
  struct Block;
  using OwnedBlock = std::unique_ptr<Block>;

  std::shared_ptr<uint8_t> share(OwnedBlock block);
  OwnedBlock find_idle(const Device& device, int64_t size);
  OwnedBlock allocate(MemoryOps& memory, const Device& device, int64_t size);
  bool reserve(int64_t size);
  std::vector<OwnedBlock> make_room(int64_t size);
  void wait_for_change(const Waiting& waiting);
  void forget(int64_t size) noexcept;
  void give(OwnedBlock block) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OwnedBlock> idle_;  ///< the one used last at the end; has room for every block
  std::size_t count_ = 0;         ///< of blocks, those in use included
  int64_t bytes_ = 0;             ///< of those
  int64_t limit_ = kDefaultStagingLimit;
};

}  // namespace arrowdl
