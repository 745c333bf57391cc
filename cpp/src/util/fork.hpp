// Device runtimes do not survive a fork: nobody may call them in a child that did not open them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace arrowdl {

/// How many forks lie between this process and the one that asked first. What was noted in another
/// process than this one differs.
uint64_t fork_count() noexcept;

/// The one `T` of this process. A forked child gets another: it has none of its parent's threads,
/// and a lock of theirs may be taken for ever. Never destroyed, for threads that end after
/// everything else.
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

}  // namespace arrowdl
