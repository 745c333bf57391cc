// Takes elements of a fixed width, in any order.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/row_indices.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Elements up to this width are copied one by one with loads of a fixed size.
constexpr int64_t kMostElementBytes = 64;

/// New memory with the elements of `width` bytes at `indices`. Element 0 of source i is at
/// `first[i]`, which is not read if no index is of source i.
Buffer take_elements(const std::vector<const uint8_t*>& first, RowIndices indices, int64_t width);

ARROWDL_END_NAMESPACE
