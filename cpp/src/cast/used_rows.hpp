// Which rows of the parts of an array belong to rows of the array.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows that count: not those under a null, or those that no row of a list, a dictionary or run
/// ends refers to. They are found when one is asked for.
class UsedRows {
 public:
  /// All rows count.
  UsedRows() = default;

  /// The rows, of `count`, that `mark(&bits)` marks.
  UsedRows(int64_t count, std::function<void(std::vector<bool>*)> mark);

  /// Whether all rows are known to count.
  bool is_whole() const noexcept { return state_ == nullptr; }
  bool operator[](int64_t row) const;

 private:
  struct State {
    int64_t count;
    std::function<void(std::vector<bool>*)> mark;
    std::vector<bool> bits;
  };
  std::shared_ptr<State> state_;
};

/// The used rows, of `count` rows, of a child of `array`: `find_rows(i)` for each row `i` that
/// counts and is not null. `array` must be in host memory when a row is requested.
UsedRows find_used(const DeviceArray& array, const UsedRows& used, int64_t count,
                   std::function<Range(int64_t)> find_rows);

/// The used rows of the dictionary.
UsedRows find_used_values(const DeviceArray& array, const UsedRows& used);

/// The used rows of the values of run ends.
UsedRows find_used_runs(const DeviceArray& array, const UsedRows& used);

ARROWDL_END_NAMESPACE
