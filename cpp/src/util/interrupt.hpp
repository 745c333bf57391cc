// What a thread that waits looks at now and then: see set_interrupt_check.
#pragma once

#include <chrono>

namespace arrowdl {

constexpr std::chrono::milliseconds kInterruptInterval{20};

/// Calls what set_interrupt_check has set; what that throws ends the wait.
void check_interrupt();

}  // namespace arrowdl
