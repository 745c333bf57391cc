#include "arrowdl/deferred_release.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <list>
#include <mutex>
#include <new>
#include <thread>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/wait.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace arrowdl {

/// A stream in the list of those that use some memory; once that is to be released, with an event
/// for its work.
struct RecordedStream {
  RetainedStream stream;
  OwnedEvent event;
  std::unique_ptr<RecordedStream> next;
};

namespace {

/// More than this many wait only when a device is far behind: then the host waits too.
constexpr int64_t kMaxPending = 1024;
/// More than any memory holds: what is counted cannot overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 50;

using Clock = std::chrono::steady_clock;
constexpr Clock::duration kShortestPause = std::chrono::microseconds(20);
constexpr Clock::duration kLongestPause = std::chrono::milliseconds(1);

std::atomic<bool> is_blocking{false};
std::atomic<int64_t> byte_limit{kDefaultReleaseLimit};

/// Memory and what has to happen before its owner has it back.
struct Release {
  std::unique_ptr<RecordedStream> streams;
  std::shared_ptr<const void> owner;
  int64_t bytes = 0;

  /// Whether every stream's work has an event. A stream that is captured into a graph can have none
  /// until that is over; an event recorded later comes later, which is as safe.
  bool record() {
    for (RecordedStream* used = streams.get(); used != nullptr; used = used->next.get()) {
      const RetainedStream& stream = used->stream;
      if (used->event) continue;
      if (stream.streams().is_capturing(stream.device(), stream.get())) return false;
      used->event = OwnedEvent::record(stream.device(), stream.get());
    }
    return true;
  }

  bool is_due() {
    if (!record()) return false;
    for (; streams != nullptr; streams = std::move(streams->next)) {
      if (!is_complete(streams->event.device(), streams->event.handle())) return false;
    }
    return true;
  }

  void wait() const {
    for (const RecordedStream* used = streams.get(); used != nullptr; used = used->next.get()) {
      synchronize_event(used->event.device(), used->event.handle());
    }
  }
};

/// Waits for the streams without an event, for which there is no memory. False where nobody may
/// wait for one.
bool wait_without_events(const RecordedStream* streams) {
  for (const RecordedStream* used = streams; used != nullptr; used = used->next.get()) {
    const RetainedStream& stream = used->stream;
    if (stream.streams().is_capturing(stream.device(), stream.get())) return false;
  }
  wait_guarded([streams](const Waiting&) {
    for (const RecordedStream* used = streams; used != nullptr; used = used->next.get()) {
      const RetainedStream& stream = used->stream;
      if (used->event) {
        synchronize_event(used->event.device(), used->event.handle());
      } else {
        stream.streams().synchronize_stream(stream.device(), stream.get());
      }
    }
  });
  return true;
}

std::atomic<int64_t> abandoned{0};

/// A failed device never comes to an end: what its work may have read stays with it. Kept where
/// leak checkers find it, without a lock that a fork might leave locked.
void leak(Release release) noexcept {
  struct Leaked {
    Release release;
    Leaked* next;
  };
  static std::atomic<Leaked*> all{nullptr};
  ++abandoned;
  auto* const leaked = new (std::nothrow) Leaked{{}, all.load()};
  if (leaked == nullptr) {
    alignas(Release) unsigned char never_destroyed[sizeof(Release)];
    new (never_destroyed) Release(std::move(release));
    return;
  }
  leaked->release = std::move(release);
  while (!all.compare_exchange_weak(leaked->next, leaked)) {
  }
}

void finish(Release release) noexcept {
  try {
    release.wait();
  } catch (...) {
    leak(std::move(release));
  }
}

/// Drops the owner if it may have its memory back. Whether nothing is left to wait for.
bool try_finish(Release& release) noexcept {
  try {
    if (!release.is_due()) return false;
    const Release done = std::move(release);
  } catch (const std::bad_alloc&) {  // there may be memory the next time
    return false;
  } catch (...) {
    leak(std::move(release));
  }
  return true;
}

/// How much there is of something.
struct Load {
  int64_t pieces = 0;
  int64_t bytes = 0;

  void add(int64_t more) noexcept {
    ++pieces;
    bytes += more;
  }
  void take(const Load& less) noexcept {
    pieces -= less.pieces;
    bytes -= less.bytes;
  }
};

/// The releases that wait, and the thread that looks after them. It asks instead of waiting, so
/// that a stream that is behind holds up nobody's memory but its own. The thread starts with the
/// first release and stops when the process exits, before the runtimes go; nothing of this is ever
/// freed, so that exit has no order.
class Reaper {
 public:
  static Reaper& get() {
    static auto* const reaper = new Reaper;
    return *reaper;
  }

  /// Takes `release` unless there is no room (`needs_room`) or there can be no thread.
  bool take(Release& release, bool needs_room) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if ((needs_room && !has_room(release.bytes)) || !start()) return false;
    const int64_t bytes = release.bytes;
    arrived_.push_back(std::move(release));
    pending_.add(bytes);
    changed_.notify_all();
    return true;
  }

  Load pending() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return pending_;
  }

  /// Whether the calling thread is the one that looks after the releases: an owner that it drops
  /// may release something itself.
  static bool is_this_thread() noexcept { return is_reaping; }

  bool is_of_another_process() const { return is_forked_; }

  bool is_stopped() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return is_stopping_;
  }

  /// At exit: the thread leaves the runtimes alone from here on, and has ended. Not waited for
  /// without end, since an owner's deleter may wait for what this thread holds.
  void stop(const Waiting& waiting) {
    if (is_forked_) return;  // its condition variable may have been forked in use
    std::unique_lock<std::mutex> lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
    waiting.wait_for(changed_, lock, std::chrono::seconds(1), [this] { return !is_running_; });
    if (is_running_ || !thread_.joinable()) return;
    std::thread ended = std::move(thread_);
    lock.unlock();
    waiting.join(ended);
  }

 private:
  Reaper() {
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                   [] { get().abandon(); });
#endif
  }

  bool has_room(int64_t bytes) const noexcept {
    return pending_.pieces < kMaxPending &&
           (pending_.bytes == 0 || bytes <= byte_limit - pending_.bytes);
  }

  bool start() noexcept {
    if (is_running_ || is_stopping_) return is_running_ && !is_stopping_;
    try {
      thread_ = std::thread([this] { run(); });
      is_running_ = true;
      std::atexit(stop_releases);
    } catch (...) {  // no thread, no memory: the host waits
    }
    return is_running_;
  }

  void run() noexcept {
    const Waiting waiting = Waiting::on_own_thread();
    is_reaping = true;
    Clock::duration pause = kShortestPause;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!is_stopping_) {
      if (waiting_.empty()) {
        waiting.wait(changed_, lock, [this] { return is_stopping_ || !arrived_.empty(); });
        pause = kShortestPause;
      } else {
        waiting.wait_for(changed_, lock, pause, [this] { return is_stopping_; });
      }
      waiting_.splice(waiting_.end(), arrived_);
      if (is_stopping_) break;
      lock.unlock();
      const Clock::time_point start = Clock::now();
      const Load finished = sweep();
      // However many wait, most of the time is not spent on asking.
      pause = finished.pieces > 0 ? kShortestPause : std::min(2 * pause, kLongestPause);
      pause = std::max(pause, 4 * (Clock::now() - start));
      lock.lock();
      pending_.take(finished);
    }
    is_running_ = false;
    changed_.notify_all();
  }

  Load sweep() noexcept {
    Load finished;
    for (auto release = waiting_.begin(); release != waiting_.end();) {
      const int64_t bytes = release->bytes;
      if (try_finish(*release)) {
        release = waiting_.erase(release);
        finished.add(bytes);
      } else {
        ++release;
      }
    }
    return finished;
  }

  /// In a forked child there is no thread, and the runtime must not be asked: what waited stays.
  void abandon() {
    abandoned_.splice(abandoned_.end(), arrived_);
    is_forked_ = is_forked_ || is_running_;  // else the child is as good as new
    pending_ = {};
    mutex_.unlock();
  }

  static inline thread_local bool is_reaping = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Release> arrived_;
  std::list<Release> waiting_;    ///< the thread's own; at exit the memory goes with the process
  std::list<Release> abandoned_;  ///< a forked child's
  Load pending_;
  std::thread thread_;
  bool is_running_ = false;
  bool is_stopping_ = false;
  std::atomic<bool> is_forked_{false};
};

/// Until others have made room, or nothing is left to wait for: whichever is first. A stream that
/// is stuck holds up only what itself has to wait for it.
void wait_for_room(const Waiting& waiting, Release& release) {
  Reaper& reaper = Reaper::get();
  for (Clock::duration pause = kShortestPause; !release.is_due() && !reaper.take(release, true);
       pause = std::min(2 * pause, kLongestPause)) {
    if (reaper.is_stopped()) {  // the process ends
      leak(std::move(release));
      return;
    }
    waiting.sleep(pause);
  }
}

/// Has `release`, which is not due, happen later, or waits until it is due.
void defer(Release& release) {
  Reaper& reaper = Reaper::get();
  // A capture may be this thread's to end, and on the reaper depend all others.
  const bool may_wait = release.record() && !Reaper::is_this_thread();
  if (reaper.is_stopped()) {  // the process ends: nobody waits, nothing is dropped
    leak(std::move(release));
  } else if (!may_wait) {
    if (!reaper.take(release, false)) leak(std::move(release));
  } else if (is_blocking) {
    finish(std::move(release));
  } else if (!reaper.take(release, true)) {
    wait_guarded([&](const Waiting& waiting) { wait_for_room(waiting, release); });
  }
}

}  // namespace

namespace {

bool may_wait_here() {
  return !Reaper::is_this_thread() && !Reaper::get().is_of_another_process() &&
         !Reaper::get().is_stopped();
}

/// As wait_without_events, for a stream that nobody has noted.
bool wait_without_note(const Device& device, StreamHandle stream) noexcept {
  try {
    StreamOps& streams = require_streams(device, "wait for a stream");
    if (!may_wait_here() || streams.is_capturing(device, stream)) return false;
    wait_guarded([&](const Waiting&) { streams.synchronize_stream(device, stream); });
    return true;
  } catch (...) {  // the device is no more
    return false;
  }
}

/// Where there is no memory for a release later: now, if its streams may be waited for.
void finish_without_memory(Release release) noexcept {
  try {
    if (may_wait_here() && wait_without_events(release.streams.get())) return;
  } catch (...) {  // the device is no more
  }
  leak(std::move(release));
}

}  // namespace

bool RecordedStreams::wait() noexcept {
  const std::unique_ptr<RecordedStream> streams(first_.exchange(nullptr));
  try {
    if (may_wait_here() && wait_without_events(streams.get())) return true;
  } catch (...) {  // the device is no more
  }
  ++abandoned;
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
    const bool is_kept = used->stream.has_owner() || !added->stream.has_owner();
    if (is_kept && streams.is_same_stream(used->stream.get(), added->stream.get())) return;
  }
  do {  // one that another thread adds meanwhile may be the same: then there is one event more
    added->next.release();
    added->next.reset(first);
  } while (!first_.compare_exchange_weak(first, added.get(), std::memory_order_acq_rel,
                                         std::memory_order_acquire));
  added.release();
}

void RecordedStreams::release(std::shared_ptr<const void> owner, int64_t bytes) noexcept {
  Release release{std::unique_ptr<RecordedStream>(first_.exchange(nullptr)), std::move(owner),
                  std::clamp(bytes, int64_t{0}, kMaxBytes)};
  try {
    if (Reaper::get().is_of_another_process()) {
      leak(std::move(release));
      return;
    }
    if (!release.is_due()) defer(release);
  } catch (const std::bad_alloc&) {
    finish_without_memory(std::move(release));
  } catch (...) {  // the device or the stream is no more: nobody can tell when it is safe
    leak(std::move(release));
  }
}

void release_after(const Device& device, StreamHandle stream, std::shared_ptr<const void> owner,
                   std::shared_ptr<const void> stream_owner, int64_t bytes) noexcept {
  RecordedStreams used;
  try {
    used.add(device, stream, stream_owner);
  } catch (const std::bad_alloc&) {
    if (!wait_without_note(device, stream)) leak({nullptr, std::move(owner), bytes});
    return;
  } catch (...) {
    leak({nullptr, std::move(owner), bytes});
    return;
  }
  used.release(std::move(owner), bytes);
}

void set_blocking_release(bool blocking) noexcept { is_blocking = blocking; }

bool is_blocking_release() noexcept { return is_blocking; }

void set_release_limit(int64_t bytes) {
  if (bytes < 0) raise_value_error("a release limit of ", bytes, " bytes: it is 0 or more");
  byte_limit = std::min(bytes, kMaxBytes);
}

int64_t release_limit() noexcept { return byte_limit; }

void stop_releases() noexcept {
  try {
    wait_guarded([](const Waiting& waiting) { Reaper::get().stop(waiting); });
  } catch (...) {  // a lock that fails: the thread goes with the process
  }
}

int64_t abandoned_releases() noexcept { return abandoned; }

int64_t pending_releases() noexcept {
  try {
    return Reaper::get().pending().pieces;
  } catch (...) {
    return 0;
  }
}

int64_t pending_release_bytes() noexcept {
  try {
    return Reaper::get().pending().bytes;
  } catch (...) {
    return 0;
  }
}

}  // namespace arrowdl
