// Takes bits, in any order.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/row_indices.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The bits of a source from bit `offset` on. `bits` is nullptr if all are set.
struct SourceBits {
  const uint8_t* bits;
  int64_t offset;
};

/// A new bitmap with the bits at `rows`, `count` of them. The sources have `lengths[i]` rows each,
/// and are numbered through.
Buffer take_numbered_bits(const std::vector<SourceBits>& sources,
                          const std::vector<int64_t>& lengths, const uint32_t* rows, int64_t count);

/// A new bitmap with `run` bits of each row: those of row i start at bit i * run of its source.
Buffer take_bits(const std::vector<SourceBits>& sources, RowIndices indices, int64_t run);

ARROWDL_END_NAMESPACE
