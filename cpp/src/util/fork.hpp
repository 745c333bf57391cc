// Tells a forked child from its parent: threads, locks and device runtimes do not survive a fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The number of forks between this process and the first one that called this function. A value
/// that was noted in another process differs.
uint64_t fork_count() noexcept;

/// The one `T` of this process. A forked child gets a new one: its parent's threads are missing,
/// and may have held a lock. Never destroyed, for threads that end after everything else.
template <typename T>
T& of_this_process() {
  struct Made {
    const uint64_t process = fork_count();
    T object;
  };
  static std::atomic<Made*> current{new Made};
  Made* known = current.load();
  if (known->process == fork_count()) return known->object;
  auto fresh = std::make_unique<Made>();
  const bool is_first = current.compare_exchange_strong(known, fresh.get());
  return is_first ? fresh.release()->object : known->object;
}

ARROWDL_END_NAMESPACE
