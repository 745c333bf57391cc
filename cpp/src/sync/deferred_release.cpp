// Decides where a release happens: now, on the release thread, or never.
#include "arrowdl/deferred_release.hpp"

#include <algorithm>
#include <atomic>
#include <new>

#include "arrowdl/backends.hpp"
#include "arrowdl/wait.hpp"
#include "sync/release.hpp"
#include "sync/release_thread.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::atomic<bool> is_blocking{false};

/// Without a release thread: waits until the release is due.
void finish_here(const Waiting& waiting, Release& release) {
  for (auto pause = kShortestPause; !release.is_due(); pause = std::min(2 * pause, kLongestPause)) {
    waiting.sleep(pause);
  }
}

/// For a release that is not due. A consumer's deleter comes here, on any thread: it does not wait.
void defer(Release& release) {
  ReleaseThread& thread = ReleaseThread::get();
  // A capture may be this thread's to end, and all others depend on the release thread.
  const bool may_wait = release.record() && !ReleaseThread::is_this_thread();
  if (may_wait && is_blocking && !thread.is_stopped()) {
    release.wait();
    const Release done = std::move(release);
  } else if (!thread.take(release)) {
    if (!may_wait || thread.is_stopped()) {  // the process ends: no wait, nothing is dropped
      abandon(std::move(release));
    } else {
      wait_guarded([&](const Waiting& waiting) { finish_here(waiting, release); });
    }
  }
}

/// Whether no release thread will run: in a forked child, or without memory to make one.
bool is_forked_or_lost() noexcept {
  try {
    return ReleaseThread::get().is_forked();
  } catch (...) {
    return true;
  }
}

/// Leaves the release to the release thread: also after an error of the device, which may pass. In
/// a forked child it does not pass.
void finish_later(Release release) noexcept {
  const bool is_own = release.streams == nullptr || release.streams->process == fork_count();
  try {
    if (is_own && ReleaseThread::get().take(release)) return;
  } catch (...) {  // no memory
  }
  abandon(std::move(release));
}

bool may_wait_here() {
  return !ReleaseThread::is_this_thread() && !ReleaseThread::get().is_forked() &&
         !ReleaseThread::get().is_stopped();
}

/// As wait_for_streams, for one stream.
bool wait_for_stream(const Device& device, StreamHandle stream) noexcept {
  try {
    StreamOps& streams = require_streams(device, "wait for a stream");
    if (!may_wait_here() || streams.is_capturing(device, stream)) return false;
    wait_guarded([&](const Waiting&) { streams.synchronize_stream(device, stream); });
    return true;
  } catch (...) {  // the device has ended
    return false;
  }
}

/// For a release that cannot be deferred for lack of memory: waits now, unless a stream is
/// captured.
void finish_without_memory(Release release) noexcept {
  try {
    if (may_wait_here() && wait_for_streams(release.streams.get())) return;
  } catch (...) {  // the device has ended
  }
  abandon(std::move(release));
}

}  // namespace

bool RecordedStreams::wait() noexcept {
  const std::unique_ptr<RecordedStream> streams(first_.exchange(nullptr));
  try {
    if (may_wait_here() && wait_for_streams(streams.get())) return true;
  } catch (...) {  // the device has ended
  }
  count_abandoned();
  return false;
}

RecordedStreams::~RecordedStreams() { const std::unique_ptr<RecordedStream> list(first_.load()); }

void RecordedStreams::add(const Device& device, StreamHandle stream,
                          std::shared_ptr<const void> owner) {
  StreamOps& streams = require_streams(device, "keep memory for a stream");
  auto added = std::make_unique<RecordedStream>(
      RecordedStream{RetainedStream(streams, device, stream, std::move(owner)), {}, {}});
  RecordedStream* first = first_.load(std::memory_order_acquire);
  for (const RecordedStream* used = first; used != nullptr; used = used->next.get()) {
    // The handles of default streams mean another stream on each device.
    if (used->stream.device() != device) continue;
    const bool is_kept = used->stream.has_owner() || !added->stream.has_owner();
    if (is_kept && streams.is_same_stream(used->stream.get(), added->stream.get())) return;
  }
  do {  // one that another thread adds meanwhile may be the same: then there is one event more
    static_cast<void>(added->next.release());
    added->next.reset(first);
  } while (!first_.compare_exchange_weak(first, added.get(), std::memory_order_acq_rel,
                                         std::memory_order_acquire));
  static_cast<void>(added.release());
}

void RecordedStreams::release(std::shared_ptr<const void> owner, int64_t bytes) noexcept {
  Release release{std::unique_ptr<RecordedStream>(first_.exchange(nullptr)), std::move(owner),
                  std::clamp(bytes, int64_t{0}, kMaxReleaseBytes)};
  try {
    if (ReleaseThread::get().is_forked()) {
      abandon(std::move(release));
      return;
    }
    if (!release.is_due()) defer(release);
  } catch (const std::bad_alloc&) {
    finish_without_memory(std::move(release));
  } catch (...) {
    finish_later(std::move(release));
  }
}

void release_after(const Device& device, StreamHandle stream, std::shared_ptr<const void> owner,
                   std::shared_ptr<const void> stream_owner, int64_t bytes) noexcept {
  RecordedStreams used;
  try {
    used.add(device, stream, std::move(stream_owner));
  } catch (const std::bad_alloc&) {
    if (!wait_for_stream(device, stream)) abandon({nullptr, std::move(owner), bytes});
    return;
  } catch (...) {
    abandon({nullptr, std::move(owner), bytes});
    return;
  }
  used.release(std::move(owner), bytes);
}

ConsumerWork::ConsumerWork() noexcept : process_(fork_count()) {}

bool ConsumerWork::is_of_this_process() const noexcept { return process_ == fork_count(); }

void release_after_work(const Device& device, std::shared_ptr<const ConsumerWork> work,
                        std::shared_ptr<const void> owner, int64_t bytes) noexcept {
  Release release{nullptr, std::move(owner), std::clamp(bytes, int64_t{0}, kMaxReleaseBytes)};
  release.device = device;
  release.work = std::move(work);
  release.has_work = true;
  if (is_forked_or_lost() || !release.work->is_of_this_process()) {
    abandon(std::move(release));
  } else {
    finish_later(std::move(release));
  }
}

void set_blocking_release(bool blocking) noexcept { is_blocking = blocking; }

bool is_blocking_release() noexcept { return is_blocking; }

ARROWDL_END_NAMESPACE
