// Finds the runs of a run-end encoded array.
#pragma once

#include <algorithm>
#include <cstdint>

#include "array/row_access.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Calls `visit` with a zero of the C++ type of the run ends.
template <typename Visitor>
auto visit_run_ends(const Type& type, const Visitor& visit) {
  switch (type.children[0].schema->format[0]) {
    case 's':
      return visit(int16_t{});
    case 'i':
      return visit(int32_t{});
    default:
      return visit(int64_t{});
  }
}

/// Finds the runs of rows of a window.
template <typename RunEnd>
class RunReader {
 public:
  explicit RunReader(const DeviceArray& array)
      : array_(array),
        end_array_(array.child(0)),
        ends_(end_array_, 1),
        run_count_(std::min(end_array_.length(), array.child(1).length())) {}

  /// The runs that have `rows` of the window, which must not be empty. Raises ValueError unless the
  /// run ends ascend and cover the rows.
  Range find_runs(Range rows) const {
    const int64_t first_row = array_.offset() + rows.start;
    const int64_t first = find_run(first_row);
    int64_t run = first;
    for (int64_t previous = first_row;; ++run) {
      if (run == run_count_ || ends_[run] <= previous) raise_bad_ends(run);
      previous = ends_[run];
      if (previous >= first_row + rows.length) break;
    }
    return Range{first, run + 1 - first};
  }

  /// The end of run `run` of find_runs(rows), relative to the first of `rows`.
  int64_t end_within(int64_t run, Range rows) const {
    return std::min<int64_t>(ends_[run] - (array_.offset() + rows.start), rows.length);
  }

 private:
  /// The first run that ends after `row`.
  int64_t find_run(int64_t row) const {
    int64_t low = 0;
    for (int64_t count = run_count_; count > 0;) {
      const int64_t half = count / 2;
      if (ends_[low + half] <= row) {
        low += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return low;
  }

  [[noreturn]] void raise_bad_ends(int64_t run) const {
    raise_value_error("malformed ", to_string(array_.type()), " array: its ", run_count_,
                      " run ends do not ascend to its ", array_.offset() + array_.length(),
                      " rows (run ", run, ")");
  }

  const DeviceArray& array_;
  DeviceArray end_array_;
  ElementReader<RunEnd> ends_;
  int64_t run_count_;
};

ARROWDL_END_NAMESPACE
