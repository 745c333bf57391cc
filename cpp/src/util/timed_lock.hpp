// Locks a mutex within a time.
#pragma once

#include <chrono>
#include <mutex>

#include "arrowdl/namespace.hpp"

#if defined(__SANITIZE_THREAD__)
#define ARROWDL_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ARROWDL_HAS_TSAN 1
#endif
#endif

ARROWDL_BEGIN_NAMESPACE

/// Locks `mutex` within `duration`, or returns false. ThreadSanitizer (of GCC 12 and Clang 14) does
/// not know pthread_mutex_clocklock, which libstdc++ calls for clocks that nobody sets.
inline bool try_lock_for(std::timed_mutex& mutex, std::chrono::milliseconds duration) {
#ifdef ARROWDL_HAS_TSAN
  return mutex.try_lock_until(std::chrono::system_clock::now() + duration);
#else
  return mutex.try_lock_for(duration);
#endif
}

ARROWDL_END_NAMESPACE
