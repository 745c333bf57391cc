// Device runtimes do not survive a fork: nobody may call them in a child that did not open them.
#pragma once

#include <cstdint>

namespace arrowdl {

/// How many forks lie between this process and the one that asked first. What was noted in another
/// process than this one differs.
uint64_t fork_count() noexcept;

}  // namespace arrowdl
