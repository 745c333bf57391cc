// Waiting on the host, which nobody does with a lock of the caller's that others may need.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace arrowdl {

/// Calls `wait`, which may wait for other threads or for a device.
using WaitGuard = void (*)(const std::function<void()>& wait);

/// What every wait on the host, and the callbacks of every exported stream, go through from now on:
/// bindings let go of the interpreter lock meanwhile if the caller holds it, since those who are
/// waited for may need it. nullptr: nothing.
void set_wait_guard(WaitGuard guard) noexcept;

namespace detail {
void call_guarded(const std::function<void()>& wait);
}

/// That the caller's locks are let go of. All of arrowdl's waiting takes one, so that none is
/// forgotten.
class Waiting {
 public:
  /// For a thread of arrowdl's own, which nobody called.
  static Waiting on_own_thread() noexcept { return Waiting(); }
  /// For threads of arrowdl's own that compute, and need no lock that a caller may hold.
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
  /// Whether `is_over()` at the end.
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

}  // namespace arrowdl
