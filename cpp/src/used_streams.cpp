#include "arrowdl/used_streams.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <system_error>
#include <thread>

#include "arrowdl/event.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace arrowdl {
namespace {

/// More than this many wait only when a device is far behind: then the host waits too, so that
/// memory stays bounded.
constexpr std::size_t kMaxPending = 1024;

std::atomic<bool> is_blocking{false};

/// Memory and what has to happen before its owner has it back.
struct Release {
  std::vector<OwnedEvent> events;
  std::shared_ptr<const void> owner;

  bool is_due() const {
    return std::all_of(events.begin(), events.end(), [](const OwnedEvent& event) {
      return is_complete(event.device(), event.get());
    });
  }

  void wait() const {
    for (const OwnedEvent& event : events) synchronize_event(event.device(), event.get());
  }
};

/// A failed device never comes to an end: what its work may have read stays with it.
void leak(Release release) noexcept { new Release(std::move(release)); }

void finish(Release release) noexcept {
  try {
    release.wait();
  } catch (...) {
    leak(std::move(release));
  }
}

/// The releases that wait, and the thread that waits for them. The thread starts with the first one
/// and lives as long as the process; nothing of this is ever freed, so that exit has no order.
class Reaper {
 public:
  static Reaper& get() {
    static auto* const reaper = new Reaper;
    return *reaper;
  }

  /// Takes `release` unless too many wait already or there can be no thread.
  bool take(Release& release) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pending_ >= kMaxPending || !start()) return false;
    queue_.push_back(std::move(release));
    ++pending_;
    arrived_.notify_one();
    return true;
  }

  int64_t pending() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(pending_);
  }

  bool is_of_another_process() const { return is_forked_; }

 private:
  Reaper() {
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                   [] { get().abandon(); });
#endif
  }

  bool start() noexcept {
    try {
      if (!is_running_) std::thread([this] { run(); }).detach();
      is_running_ = true;
    } catch (const std::system_error&) {
    }
    return is_running_;
  }

  [[noreturn]] void run() {
    for (;;) {
      Release release = next();
      finish(std::move(release));
      const std::lock_guard<std::mutex> lock(mutex_);
      --pending_;
    }
  }

  Release next() {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_.wait(lock, [this] { return !queue_.empty(); });
    Release release = std::move(queue_.front());
    queue_.pop_front();
    return release;
  }

  /// In a forked child there is no thread, and the runtime must not be asked: what waited stays.
  void abandon() {
    new std::deque<Release>(std::move(queue_));
    queue_.clear();
    pending_ = 0;
    is_forked_ = true;
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Release> queue_;
  std::size_t pending_ = 0;
  bool is_running_ = false;
  std::atomic<bool> is_forked_{false};
};

}  // namespace

void UsedStreams::add(const Device& device, Stream stream) {
  Backend& backend = require_backend(device, "keep memory for a stream");
  const std::lock_guard<std::mutex> lock(mutex_);
  // A backend that copies what it keeps gives other handles for the same stream: one event more.
  if (std::find(streams_.begin(), streams_.end(), stream) != streams_.end()) return;
  streams_.reserve(streams_.size() + 1);
  streams_.push_back(backend.keep_stream(device, stream));
  backend_ = &backend;
  device_ = device;
}

bool UsedStreams::empty() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return streams_.empty();
}

void UsedStreams::drop() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Stream stream : streams_) backend_->drop_stream(device_, stream);
  streams_.clear();
}

void UsedStreams::release(std::shared_ptr<const void> owner) noexcept {
  Release release{{}, std::move(owner)};
  try {
    if (Reaper::get().is_of_another_process()) {
      leak(std::move(release));
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Stream stream : streams_) {
        release.events.push_back(OwnedEvent::record(device_, stream));
      }
    }
    drop();
    if (release.is_due()) return;
    if (!is_blocking && Reaper::get().take(release)) return;
    finish(std::move(release));
  } catch (...) {  // the device or the stream is no more: nobody can tell when it is safe
    leak(std::move(release));
  }
}

void set_blocking_release(bool blocking) noexcept { is_blocking = blocking; }

int64_t pending_releases() noexcept {
  try {
    return Reaper::get().pending();
  } catch (...) {
    return 0;
  }
}

}  // namespace arrowdl
