// Deferred release: memory goes back to its owner when no stream reads it any more.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// The streams whose work may read some memory on one device. Safe to use from many threads.
class UsedStreams {
 public:
  UsedStreams() = default;
  ~UsedStreams() { drop(); }
  UsedStreams(const UsedStreams&) = delete;
  UsedStreams& operator=(const UsedStreams&) = delete;

  /// `stream` may read the memory until its present and later work is done. Raises BufferError
  /// where there is no backend to ask when that is.
  void add(const Device& device, Stream stream);
  bool empty() const;
  /// Drops `owner` once the work that the streams hold now is done: at once where it is, else from
  /// a thread of ours; with `set_blocking_release`, and when very many wait already, the host waits
  /// here. In a forked child, which cannot ask the runtime, `owner` is never dropped.
  void release(std::shared_ptr<const void> owner) noexcept;

 private:
  void drop() noexcept;

  mutable std::mutex mutex_;
  Backend* backend_ = nullptr;
  Device device_;
  std::vector<Stream> streams_;  // kept by the backend
};

/// Whether releases wait on the host for the streams instead of being deferred.
void set_blocking_release(bool blocking) noexcept;

/// How many releases wait for their streams now.
int64_t pending_releases() noexcept;

}  // namespace arrowdl
