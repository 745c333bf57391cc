// Deferred release: memory goes back to its owner when no stream reads it any more.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// A stream that the runtime keeps for us, where it counts the owners of its streams: see
/// `Backend::keep_stream`.
class KeptStream {
 public:
  KeptStream(Backend& backend, const Device& device, Stream stream)
      : backend_(&backend), device_(device), stream_(backend.keep_stream(device, stream)) {}
  KeptStream(KeptStream&& other) noexcept { swap(other); }
  KeptStream& operator=(KeptStream&& other) noexcept {
    KeptStream(std::move(other)).swap(*this);
    return *this;
  }
  ~KeptStream() {
    if (backend_ != nullptr) backend_->drop_stream(device_, stream_);
  }

  Backend& backend() const noexcept { return *backend_; }
  const Device& device() const noexcept { return device_; }
  Stream get() const noexcept { return stream_; }
  void swap(KeptStream& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
  }

 private:
  Backend* backend_ = nullptr;
  Device device_;
  Stream stream_ = nullptr;
};

/// The streams whose work may read some memory. Safe to use from many threads.
class UsedStreams {
 public:
  /// `stream` may read the memory until its present and later work is done. Raises BufferError
  /// where there is no backend to ask when that is.
  void add(const Device& device, Stream stream);
  bool empty() const noexcept { return !is_used_; }
  /// Drops `owner` once the work that the streams hold now is done: at once where it is, else from
  /// a thread of ours; with `set_blocking_release`, and when very many wait already, the host waits
  /// here. A stream that is captured into a graph is asked once the capture is over. In a forked
  /// child, which cannot ask the runtime, `owner` is never dropped.
  void release(std::shared_ptr<const void> owner) noexcept;

 private:
  std::atomic<bool> is_used_{false};  // asked of every array that goes, most of them the CPU's
  std::mutex mutex_;
  std::vector<KeptStream> streams_;
};

/// Whether releases wait on the host for the streams instead of being deferred.
void set_blocking_release(bool blocking) noexcept;

/// Ends the thread that looks after the releases that wait, for the rest of the process. What is
/// not due then stays with its device. For bindings whose interpreter goes before the process does:
/// no owner is dropped from that thread any more once this has returned, unless one takes a second.
void stop_releases() noexcept;

/// How many releases wait for their streams now.
int64_t pending_releases() noexcept;

}  // namespace arrowdl
