// Refuses work of the CPU on memory that it cannot read.
#pragma once

#include "arrowdl/device.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises BufferError unless the CPU can read memory on `device`. `verb` completes "cannot … on
/// cuda:0".
void require_host_readable(const Device& device, const char* verb);

ARROWDL_END_NAMESPACE
