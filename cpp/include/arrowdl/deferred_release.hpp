// Deferred release: memory returns to its owner after GPU streams have finished reading it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "arrowdl/backend.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A GPU stream whose handle stays valid: retained if the runtime counts references to its streams
/// (`StreamOps::retain_stream`), else kept alive by `owner`, if the caller has one.
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

/// The GPU streams whose work may read some memory. Many threads may call `add` at once; `release`
/// or `wait` is the last call.
class RecordedStreams {
 public:
  RecordedStreams() noexcept = default;
  RecordedStreams(const RecordedStreams&) = delete;
  RecordedStreams& operator=(const RecordedStreams&) = delete;
  ~RecordedStreams();

  /// Delays the release until the work that `stream` holds at that time is done. `owner`, if given,
  /// keeps the handle valid. Raises BufferError if no backend can tell when the work is done.
  void add(const Device& device, StreamHandle stream, std::shared_ptr<const void> owner = {});
  bool empty() const noexcept { return first_.load(std::memory_order_acquire) == nullptr; }
  /// Drops `owner` after the work that the streams hold now: at once if that is done, else on the
  /// release thread. The host waits here with `set_blocking_release`, and without memory or a
  /// thread to defer the release. A stream that is being captured into a graph is polled after the
  /// capture, and never waited for. A forked child, which cannot
  /// call the runtime, never drops `owner`. `bytes` is the size of the memory that `owner` frees;
  /// 0: unknown.
  void release(std::shared_ptr<const void> owner, int64_t bytes = 0) noexcept;
  /// Waits on the host for the work that the streams hold now, without allocating: for callers that
  /// have no memory to defer the release. False if waiting is not allowed, so that the memory has
  /// to stay.
  bool wait() noexcept;

 private:
  // A list that only grows: every array has one, nearly always empty.
  std::atomic<RecordedStream*> first_{nullptr};
};

/// Drops `owner` once the work that `stream` holds now is done, as RecordedStreams::release does.
void release_after(const Device& device, StreamHandle stream, std::shared_ptr<const void> owner,
                   std::shared_ptr<const void> stream_owner = {}, int64_t bytes = 0) noexcept;

/// Work of a consumer on streams that it does not name, such as the compute stream of XLA.
class ConsumerWork {
 public:
  /// Made when the consumer gets the memory: a forked child does not ask for the work of its
  /// parent.
  ConsumerWork() noexcept;
  virtual ~ConsumerWork() = default;
  bool is_of_this_process() const noexcept;
  /// Later work on `stream`, one of arrowdl's, waits for all that the consumer has started on
  /// `device`. May throw. Called on the release thread.
  virtual void order_before(const Device& device, StreamHandle stream) const = 0;

 private:
  const uint64_t process_;
};

/// Drops `owner` on the release thread once the work that the consumer has started by now, or
/// starts before that thread asks, is done. Releases of one `work` are asked for together.
void release_after_work(const Device& device, std::shared_ptr<const ConsumerWork> work,
                        std::shared_ptr<const void> owner, int64_t bytes = 0) noexcept;

/// Whether releases wait on the host for the streams instead of being deferred.
void set_blocking_release(bool blocking) noexcept;
bool is_blocking_release() noexcept;

constexpr int64_t kDefaultReleaseLimit = int64_t{1} << 30;

/// Limits the bytes of pending releases, 1 GiB by default: above it, `wait_for_release_room` waits.
/// Raises ValueError for less than 0.
void set_release_limit(int64_t bytes);
int64_t release_limit() noexcept;

/// Waits on the host, through the wait guard, while more bytes than the limit or more than a
/// thousand releases are pending, not counting those that may wait for the caller: of captured
/// streams, and of `release_after_work`. Work that allocates waits here, since a consumer's deleter
/// cannot: it may be called on any thread. Raises what the interrupt check raises.
void wait_for_release_room();

/// Ends the release thread, for the rest of the process. Releases that are not due are abandoned.
/// For bindings whose interpreter ends before the process does: after this call that thread drops
/// no owner, unless one takes longer than a second to drop.
void stop_releases() noexcept;

/// The number of pending releases.
int64_t pending_releases() noexcept;

/// Their size in bytes, as far as it is known.
int64_t pending_release_bytes() noexcept;

/// The number of abandoned releases of this process. Their owners are never dropped, since the
/// device or stream failed, or could no longer be called (in a forked child, or at exit).
int64_t abandoned_releases() noexcept;

ARROWDL_END_NAMESPACE
