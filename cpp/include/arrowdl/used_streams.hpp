// Deferred release: memory goes back to its owner when no stream reads it any more.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// The streams whose work may read some memory. Safe to use from many threads.
class UsedStreams {
 public:
  /// `stream` may read the memory until its present and later work is done.
  void add(Stream stream);
  bool empty() const;
  /// Drops `owner` once the work that the streams hold now is done: at once where it is, else from
  /// a thread of ours; with `set_blocking_release`, and when very many wait already, the host waits
  /// here. A stream that is captured into a graph is asked once the capture is over. In a forked
  /// child, which cannot ask the runtime, `owner` is never dropped.
  void release(const Device& device, std::shared_ptr<const void> owner) noexcept;

 private:
  mutable std::mutex mutex_;
  std::vector<Stream> streams_;
};

/// Whether releases wait on the host for the streams instead of being deferred.
void set_blocking_release(bool blocking) noexcept;

/// How many releases wait for their streams now.
int64_t pending_releases() noexcept;

}  // namespace arrowdl
