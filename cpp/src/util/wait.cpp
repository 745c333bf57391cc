// The hooks through which bindings take part in waits: the guard and the interrupt check.
#include "arrowdl/wait.hpp"

#include <atomic>

#include "util/interrupt.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::atomic<WaitGuard> wait_guard{nullptr};
std::atomic<void (*)()> interrupt_check{nullptr};

/// Work on fewer bytes keeps the caller's locks: who gives them up may wait to have them again.
constexpr int64_t kLongWorkBytes = int64_t{256} << 10;

}  // namespace

void set_wait_guard(WaitGuard guard) noexcept { wait_guard = guard; }

void detail::call_guarded(const std::function<void()>& wait) {
  const WaitGuard guard = wait_guard;
  guard == nullptr ? wait() : guard(wait);
}

void detail::call_guarded_if_long(int64_t bytes, const std::function<void()>& work) {
  bytes < kLongWorkBytes ? work() : call_guarded(work);
}

void set_interrupt_check(void (*check)()) noexcept { interrupt_check = check; }

void check_interrupt() {
  if (void (*check)() = interrupt_check.load()) check();
}

ARROWDL_END_NAMESPACE
