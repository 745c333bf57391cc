// The check for interrupts in waits for other threads: see set_interrupt_check in wait.hpp.
#pragma once

#include <chrono>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// How often a waiting thread calls check_interrupt.
constexpr std::chrono::milliseconds kInterruptInterval{20};

/// Calls the function of set_interrupt_check, if any; what it throws ends the wait.
void check_interrupt();

ARROWDL_END_NAMESPACE
