// The thread that finishes deferred releases, and their limit.
#include "sync/release_thread.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "util/interrupt.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The largest number of pending releases. Above it a device is far behind, and copies wait too.
constexpr int64_t kMaxPending = 1024;
std::atomic<int64_t> byte_limit{kDefaultReleaseLimit};

/// Owners free memory on the release thread, which captures nothing.
void relax_capture_for(const Release& release) noexcept {
  for (const RecordedStream* used = release.streams.get(); used != nullptr;
       used = used->next.get()) {
    used->stream.streams().relax_capture_of_thread();
  }
  if (release.work == nullptr) return;
  try {
    require_streams(release.device, "wait for the work of a consumer").relax_capture_of_thread();
  } catch (...) {  // no backend: the release fails, too, and drops no owner
  }
}

/// Sleeps on the host until `is_over()`. Raises what a signal raises.
template <typename Predicate>
void poll(const Predicate& is_over) {
  using Clock = std::chrono::steady_clock;
  wait_guarded([&is_over](const Waiting& waiting) {
    Clock::time_point checked = Clock::now();
    for (auto pause = kShortestPause; !is_over(); pause = std::min(2 * pause, kLongestPause)) {
      waiting.sleep(pause);
      if (Clock::now() - checked < kInterruptInterval) continue;
      check_interrupt();
      checked = Clock::now();
    }
  });
}

}  // namespace

ReleaseThread& ReleaseThread::get() {
  static auto* const thread = new ReleaseThread;
  return *thread;
}

ReleaseThread::ReleaseThread() {
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                 [] { get().after_fork_in_child(); });
#endif
}

bool ReleaseThread::take(Release& release) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!start()) return false;
  const int64_t bytes = release.bytes;
  const bool may_need_caller = release.may_need_caller();
  arrived_.push_back(std::move(release));
  pending_.add(bytes);
  if (may_need_caller) unlimited_.add(bytes);
  changed_.notify_all();
  return true;
}

ReleaseLoad ReleaseThread::pending() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pending_;
}

bool ReleaseThread::is_stopped() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_stopping_;
}

void ReleaseThread::stop(const Waiting& waiting) {
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

bool ReleaseThread::has_room() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_running_) return true;  // also in a forked child: no thread would make room
  ReleaseLoad waiting = pending_;
  waiting.subtract(unlimited_);
  return waiting.count < kMaxPending && waiting.bytes <= byte_limit;
}

bool ReleaseThread::start() noexcept {
  if (is_running_ || is_stopping_) return is_running_ && !is_stopping_;
  try {
    thread_ = std::thread([this] { run(); });
    is_running_ = true;
    std::atexit(stop_releases);
  } catch (...) {  // no thread, no memory: the host waits
  }
  return is_running_;
}

void ReleaseThread::run() noexcept {
  using Clock = std::chrono::steady_clock;
  const Waiting waiting = Waiting::on_own_thread();
  is_release_thread = true;
  Clock::duration pause = kShortestPause;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!is_stopping_) {
    if (waiting_.empty()) {
      waiting.wait(changed_, lock, [this] { return is_stopping_ || !arrived_.empty(); });
      pause = kShortestPause;
    } else {
      waiting.wait_for(changed_, lock, pause, [this] { return is_stopping_; });
    }
    if (is_stopping_) break;
    std::list<Release> arrived = std::move(arrived_);
    lock.unlock();
    for (const Release& release : arrived) relax_capture_for(release);
    waiting_.splice(waiting_.end(), arrived);
    const Clock::time_point start = Clock::now();
    const ReleaseLoad finished = finish_due();
    // Sleeps longer than a poll takes, however many releases are pending.
    pause = finished.count > 0 ? kShortestPause : std::min(2 * pause, kLongestPause);
    pause = std::max(pause, 4 * (Clock::now() - start));
    lock.lock();
    pending_.subtract(finished);
    finished_ += finished.count;
    count_unlimited();
  }
  is_running_ = false;
  changed_.notify_all();
}

ReleaseLoad ReleaseThread::finish_due() noexcept {
  ReleaseLoad finished;
  record_works(waiting_);
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

void ReleaseThread::count_unlimited() noexcept {
  unlimited_ = {};
  for (const std::list<Release>* releases : {&waiting_, &arrived_}) {
    for (const Release& release : *releases) {
      if (release.may_need_caller()) unlimited_.add(release.bytes);
    }
  }
}

/// The child has no thread, and must not call the runtime: pending releases stay.
void ReleaseThread::after_fork_in_child() {
  forked_.splice(forked_.end(), arrived_);
  is_forked_ = is_forked_ || is_running_;  // else the child starts afresh
  pending_ = unlimited_ = {};
  mutex_.unlock();
}

void set_release_limit(int64_t bytes) {
  if (bytes < 0) raise_value_error("a release limit of ", bytes, " bytes: pass 0 or more");
  byte_limit = std::min(bytes, kMaxReleaseBytes);
}

int64_t release_limit() noexcept { return byte_limit; }

void stop_releases() noexcept {
  try {
    wait_guarded([](const Waiting& waiting) { ReleaseThread::get().stop(waiting); });
  } catch (...) {  // the lock failed: the thread ends with the process
  }
}

void wait_for_release_room() {
  ReleaseThread& thread = ReleaseThread::get();
  if (thread.has_room() || ReleaseThread::is_this_thread() || thread.is_forked()) return;
  poll([&thread] { return thread.has_room(); });
}

bool wait_for_release(std::chrono::steady_clock::time_point end) {
  ReleaseThread& thread = ReleaseThread::get();
  if (ReleaseThread::is_this_thread() || thread.is_forked() || thread.is_stopped()) return false;
  const int64_t before = thread.finished();
  bool is_finished = false;
  poll([&] {
    // Read before the other: a release that finishes in between is seen.
    const bool is_over = thread.pending().count == 0 || std::chrono::steady_clock::now() >= end;
    is_finished = thread.finished() != before;
    return is_finished || is_over;
  });
  return is_finished;
}

int64_t pending_releases() noexcept {
  try {
    return ReleaseThread::get().pending().count;
  } catch (...) {
    return 0;
  }
}

int64_t pending_release_bytes() noexcept {
  try {
    return ReleaseThread::get().pending().bytes;
  } catch (...) {
    return 0;
  }
}

ARROWDL_END_NAMESPACE
