// Rows of several arrays, in any order.
#pragma once

#include <cstdint>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A row of one of several arrays.
struct RowIndex {
  uint32_t source;
  uint32_t row;
};

/// Borrowed row indices, each within its array.
struct RowIndices {
  const RowIndex* begin = nullptr;
  int64_t count = 0;
};

ARROWDL_END_NAMESPACE
