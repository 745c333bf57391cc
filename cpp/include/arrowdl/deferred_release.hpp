// Deferred release: memory goes back to its owner when no stream reads it any more.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// A GPU stream whose handle stays valid: retained where the runtime counts references to its
/// streams (`StreamOps::retain_stream`); elsewhere `owner` keeps it, if the caller knows one.
class RetainedStream {
 public:
  RetainedStream(StreamOps& streams, const Device& device, StreamHandle stream,
                 std::shared_ptr<const void> owner = {})
      : streams_(&streams),
        device_(device),
        stream_(streams.retain_stream(device, stream)),
        owner_(std::move(owner)) {}
  RetainedStream(RetainedStream&& other) noexcept { swap(other); }
  RetainedStream& operator=(RetainedStream&& other) noexcept {
    RetainedStream(std::move(other)).swap(*this);
    return *this;
  }
  ~RetainedStream() {
    if (streams_ != nullptr) streams_->release_stream(device_, stream_);
  }

  StreamOps& streams() const noexcept { return *streams_; }
  const Device& device() const noexcept { return device_; }
  StreamHandle get() const noexcept { return stream_; }
  bool has_owner() const noexcept { return owner_ != nullptr; }
  void swap(RetainedStream& other) noexcept {
    std::swap(streams_, other.streams_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    std::swap(owner_, other.owner_);
  }

 private:
  StreamOps* streams_ = nullptr;
  Device device_;
  StreamHandle stream_;
  std::shared_ptr<const void> owner_;
};

struct RecordedStream;

/// The streams whose work may read some memory. Many threads may add at once; whoever releases is
/// the last to use it.
class RecordedStreams {
 public:
  RecordedStreams() noexcept = default;
  RecordedStreams(const RecordedStreams&) = delete;
  RecordedStreams& operator=(const RecordedStreams&) = delete;
  ~RecordedStreams();

  /// `stream` may read the memory until its present and later work is done. `owner` keeps its
  /// handle good, where the caller knows one. Raises BufferError where there is no backend to ask
  /// when the work is done.
  void add(const Device& device, StreamHandle stream, std::shared_ptr<const void> owner = {});
  bool empty() const noexcept { return first_.load(std::memory_order_acquire) == nullptr; }
  /// Drops `owner` once the work that the streams hold now is done: at once where it is, else from
  /// a thread of ours; with `set_blocking_release`, and when too much waits already
  /// (`set_release_limit`), the host waits here. A stream that is captured into a graph is asked
  /// once the capture is over, and never waited for. In a forked child, which cannot ask the
  /// runtime, `owner` is never dropped. Where there is no memory for all that, the host waits.
  /// `bytes` is what goes back with `owner`; 0: unknown.
  void release(std::shared_ptr<const void> owner, int64_t bytes = 0) noexcept;
  /// Waits on the host for the work that the streams hold now, without memory of ours: for what
  /// cannot be released later, for lack of it. False where that cannot be waited for, and what the
  /// streams read has to stay.
  bool wait() noexcept;

 private:
  // A list that only grows: every array has one, nearly always empty.
  std::atomic<RecordedStream*> first_{nullptr};
};

/// Drops `owner` once the work that `stream` holds now is done, as RecordedStreams::release does.
void release_after(const Device& device, StreamHandle stream, std::shared_ptr<const void> owner,
                   std::shared_ptr<const void> stream_owner = {}, int64_t bytes = 0) noexcept;

/// Whether releases wait on the host for the streams instead of being deferred.
void set_blocking_release(bool blocking) noexcept;
bool is_blocking_release() noexcept;

constexpr int64_t kDefaultReleaseLimit = int64_t{1} << 30;

/// How many bytes may wait for their streams, 1 GiB by default. One piece may always wait, however
/// large. A release that would exceed the limit waits on the host, through the wait guard, until
/// its own streams are done or others have made room. Raises ValueError for less than 0.
void set_release_limit(int64_t bytes);
int64_t release_limit() noexcept;

/// Ends the thread that looks after the releases that wait, for the rest of the process. What is
/// not due then stays with its device. For bindings whose interpreter goes before the process does:
/// no owner is dropped from that thread any more once this has returned, unless one takes a second.
void stop_releases() noexcept;

/// How many releases wait for their streams now.
int64_t pending_releases() noexcept;

/// The bytes of those, as far as whoever released them has said.
int64_t pending_release_bytes() noexcept;

/// How many never happened in this process: their device or stream failed, or nobody could ask it
/// any more, in a forked child or at exit.
int64_t abandoned_releases() noexcept;

}  // namespace arrowdl
