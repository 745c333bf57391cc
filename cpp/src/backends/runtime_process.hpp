// Remembers the process that opened a device runtime, since runtimes do not survive a fork.
#pragma once

#include <cstdint>

#include "arrowdl/device.hpp"
#include "util/fork.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The process in which it was made.
class RuntimeProcess {
 public:
  /// False in a forked child, which must not call the runtime.
  bool is_current() const noexcept { return forks_ == fork_count(); }
  /// Raises RuntimeError in a forked child; `runtime` is the runtime's display name.
  void require_current(const Device& device, const char* runtime) const {
    if (!is_current()) raise_forked(device, runtime);
  }

 private:
  [[noreturn]] static void raise_forked(const Device& device, const char* runtime);

  const uint64_t forks_ = fork_count();
};

ARROWDL_END_NAMESPACE
