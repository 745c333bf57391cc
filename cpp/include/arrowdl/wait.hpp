// Waits on the host, without the caller's locks that other threads may need.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Calls `wait`, which may wait for other threads or for a device.
using WaitGuard = void (*)(const std::function<void()>& wait);

/// Runs every later wait on the host, long copies, and the callbacks of every exported stream
/// through `guard`. For bindings, whose guard releases the interpreter lock, which the other side
/// may need. nullptr: no guard.
void set_wait_guard(WaitGuard guard) noexcept;

/// A thread that waits for another thread calls `check` every few milliseconds, with no lock of
/// ours held; an exception of `check` ends the wait. For bindings in which the waiting thread has
/// to handle signals. nullptr: no check.
void set_interrupt_check(void (*check)()) noexcept;

namespace detail {
void call_guarded(const std::function<void()>& wait);
void call_guarded_if_long(int64_t bytes, const std::function<void()>& work);
}  // namespace detail

/// Proves that the caller's locks are released. Every wait takes one, so that none forgets the
/// guard.
class Waiting {
 public:
  /// For a thread of arrowdl's own, which holds no lock of a caller.
  static Waiting on_own_thread() noexcept { return Waiting(); }
  /// For a wait for arrowdl's own computing threads, which need no lock of a caller.
  static Waiting for_own_threads() noexcept { return Waiting(); }

  void sleep(std::chrono::nanoseconds duration) const { std::this_thread::sleep_for(duration); }
  void join(std::thread& thread) const { thread.join(); }

  template <typename Predicate>
  void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
            const Predicate& is_over) const {
    changed.wait(lock, is_over);
  }
  template <typename Duration>
  void wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                const Duration& duration) const {
    changed.wait_for(lock, duration);
  }
  /// Returns `is_over()` at the end of the wait.
  template <typename Duration, typename Predicate>
  bool wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                const Duration& duration, const Predicate& is_over) const {
    return changed.wait_for(lock, duration, is_over);
  }

 private:
  Waiting() noexcept = default;

  template <typename Wait>
  friend void wait_guarded(const Wait& wait);
};

/// Calls `wait(const Waiting&)` through the guard. Allocates nothing.
template <typename Wait>
void wait_guarded(const Wait& wait) {
  detail::call_guarded([&wait] { wait(Waiting()); });
}

/// Calls `work()`, which writes `bytes` bytes and needs no lock of the caller: through the guard if
/// that takes tens of microseconds or more, so that the caller's other threads run meanwhile.
template <typename Work>
void work_guarded(int64_t bytes, const Work& work) {
  detail::call_guarded_if_long(bytes, [&work] { work(); });
}

ARROWDL_END_NAMESPACE
