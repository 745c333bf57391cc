// Locks a mutex within a time.
#pragma once

#include <chrono>
#include <mutex>

#include "arrowdl/namespace.hpp"
#include "util/sanitizers.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Locks `mutex` within `duration`, or returns false. ThreadSanitizer (of GCC 12 and Clang 14) does
/// not know pthread_mutex_clocklock, which libstdc++ calls for clocks that cannot be set.
inline bool try_lock_for(std::timed_mutex& mutex, std::chrono::milliseconds duration) {
#if ARROWDL_HAS_TSAN
  return mutex.try_lock_until(std::chrono::system_clock::now() + duration);
#else
  return mutex.try_lock_for(duration);
#endif
}

ARROWDL_END_NAMESPACE
