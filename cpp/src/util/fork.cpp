// Counts forks.
#include "util/fork.hpp"

#include <atomic>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

ARROWDL_BEGIN_NAMESPACE
namespace {

std::atomic<uint64_t> forks{0};

bool start_counting() noexcept {
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
#endif
  return true;
}

}  // namespace

uint64_t fork_count() noexcept {
  // A counter, not getpid(): that is a system call for each event.
  static const bool is_counting = start_counting();
  static_cast<void>(is_counting);
  return forks.load(std::memory_order_relaxed);
}

ARROWDL_END_NAMESPACE
