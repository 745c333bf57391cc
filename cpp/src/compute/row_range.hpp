// Ranges of rows of several arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "array/row_access.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Consecutive rows of one of several source arrays.
struct RowRange {
  std::size_t source = 0;  ///< index of the array
  Range rows;
};

/// Appends `rows` unless they are empty. Extends the last range where they follow it.
void append_range(std::vector<RowRange>* ranges, std::size_t source, Range rows);

/// a + b rows. Raises BufferError if an Arrow length cannot count them.
int64_t add_rows(int64_t a, int64_t b);

/// The rows of all `ranges`. Raises BufferError as add_rows does.
int64_t count_rows(const std::vector<RowRange>& ranges);

ARROWDL_END_NAMESPACE
