// Packs booleans into bits.
#pragma once

#include <cstdint>

#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// `count` bytes at `bools` as bits in new host memory: 1 for any byte other than 0.
Buffer pack_bools(const uint8_t* bools, int64_t count);

ARROWDL_END_NAMESPACE
