// Ranges of rows of several arrays.
#include "compute/row_range.hpp"

#include "arrowdl/error.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE

void append_range(std::vector<RowRange>* ranges, std::size_t source, Range rows) {
  if (rows.length == 0) return;
  if (!ranges->empty()) {
    RowRange& last = ranges->back();
    if (last.source == source && last.rows.end() == rows.start) {
      last.rows.length += rows.length;
      return;
    }
  }
  ranges->push_back(RowRange{source, rows});
}

int64_t add_rows(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!checked_add(a, b, &sum)) {
    raise_buffer_error(a, " and ", b, " rows are more than the 2^63 - 1 of an Arrow array");
  }
  return sum;
}

int64_t count_rows(const std::vector<RowRange>& ranges) {
  int64_t count = 0;
  for (const RowRange& range : ranges) count = add_rows(count, range.rows.length);
  return count;
}

ARROWDL_END_NAMESPACE
