// Items of an array, with a substitute for its nulls.
#pragma once

#include <cstdint>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Whether this processor has vectors of 32 bytes to blend items with, otherwise of 16.
bool has_wide_blend();

/// Copies the items of `source` whose bit, from `offset` on, is set, and `substitute` for the
/// others. An item is an unsigned integer of 1, 2, 4 or 8 bytes. `target` may be `source`.
/// `is_wide` needs has_wide_blend().
template <typename T>
void blend_items(const uint8_t* source, const uint8_t* bits, int64_t offset, int64_t count,
                 T substitute, uint8_t* target, bool is_wide = has_wide_blend());

ARROWDL_END_NAMESPACE
