// Gathers elements of a fixed width.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// New memory with the elements of `ranges`, `length` in all, of `width` bytes each. Element 0 of
/// source i is at `first[i]`, which is not read if no range is of source i. Large copies are shared
/// among threads.
Buffer gather_elements(const std::vector<const uint8_t*>& first,
                       const std::vector<RowRange>& ranges, int64_t length, int64_t width);

/// The selected elements of `width` bytes in buffer `buffer`.
Buffer gather_elements(const Selection& selection, int64_t buffer, int64_t width);

ARROWDL_END_NAMESPACE
