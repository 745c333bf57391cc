#include "arrowdl/wait.hpp"

#include <atomic>

namespace arrowdl {
namespace {

std::atomic<WaitGuard> wait_guard{nullptr};

}  // namespace

void set_wait_guard(WaitGuard guard) noexcept { wait_guard = guard; }

void detail::call_guarded(const std::function<void()>& wait) {
  const WaitGuard guard = wait_guard;
  guard == nullptr ? wait() : guard(wait);
}

}  // namespace arrowdl
