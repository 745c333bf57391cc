// Copies host memory.
#pragma once

#include <cstdint>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Copies `size` bytes: a megabyte or more on several threads, since one is slower than the memory.
void copy_bytes(uint8_t* target, const uint8_t* source, int64_t size) noexcept;

ARROWDL_END_NAMESPACE
