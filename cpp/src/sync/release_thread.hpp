// The thread that finishes deferred releases.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

#include "arrowdl/wait.hpp"
#include "sync/release.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The sleep between two polls of a release: doubled each time, between these two.
constexpr std::chrono::steady_clock::duration kShortestPause = std::chrono::microseconds(20);
constexpr std::chrono::steady_clock::duration kLongestPause = std::chrono::milliseconds(1);

/// More than any memory holds: sums of clamped sizes cannot overflow.
constexpr int64_t kMaxReleaseBytes = int64_t{1} << 50;

/// A number of releases and their bytes.
struct ReleaseLoad {
  int64_t count = 0;
  int64_t bytes = 0;

  void add(int64_t more) noexcept {
    ++count;
    bytes += more;
  }
  void subtract(const ReleaseLoad& less) noexcept {
    count -= less.count;
    bytes -= less.bytes;
  }
};

/// The pending releases and their thread. It polls instead of waiting, so that a stream that is
/// behind delays only its own memory. The thread starts with the first release and stops when the
/// process exits, before the runtimes end. Never freed, so that the order of exit does not matter.
class ReleaseThread {
 public:
  static ReleaseThread& get();

  /// Takes `release`. False if the thread has been stopped or cannot start.
  bool take(Release& release);

  ReleaseLoad pending();

  /// The number of releases that are over.
  int64_t finished() const noexcept { return finished_; }

  /// Whether the pending releases are within the limits. Those that `may_need_caller` do not count.
  bool has_room();

  /// Whether the calling thread is the release thread: an owner that it drops may release something
  /// itself.
  static bool is_this_thread() noexcept { return is_release_thread; }

  /// Whether this is a forked child of a process whose thread ran.
  bool is_forked() const noexcept { return is_forked_; }

  bool is_stopped();

  /// At exit: ends the thread, which calls no runtime from here on. Waits up to a second, since an
  /// owner's deleter may wait for what this thread holds.
  void stop(const Waiting& waiting);

 private:
  ReleaseThread();

  bool start() noexcept;
  void run() noexcept;
  ReleaseLoad finish_due() noexcept;
  void count_unlimited() noexcept;
  void after_fork_in_child();

  static inline thread_local bool is_release_thread = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Release> arrived_;
  std::list<Release> waiting_;  ///< the thread's own; at exit the memory goes with the process
  std::list<Release> forked_;   ///< what a forked child inherited and never drops
  ReleaseLoad pending_;
  ReleaseLoad unlimited_;  ///< those of them that `may_need_caller`
  std::atomic<int64_t> finished_{0};
  std::thread thread_;
  bool is_running_ = false;
  bool is_stopping_ = false;
  std::atomic<bool> is_forked_{false};
};

/// Waits on the host, through the wait guard, until a pending release is over, to `end` at most.
/// False if `end` came first, if no release is pending, or if waiting is not allowed here.
bool wait_for_release(std::chrono::steady_clock::time_point end);

ARROWDL_END_NAMESPACE
