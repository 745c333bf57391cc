// Which rows of the parts of an array belong to rows of the array.
#include "cast/used_rows.hpp"

#include <algorithm>
#include <utility>

#include "array/run_ends.hpp"

ARROWDL_BEGIN_NAMESPACE

UsedRows::UsedRows(int64_t count, std::function<void(std::vector<bool>*)> mark)
    : state_(std::make_shared<State>(State{count, std::move(mark), {}})) {}

bool UsedRows::operator[](int64_t row) const {
  if (is_whole()) return true;
  if (state_->mark) {
    state_->bits.resize(static_cast<std::size_t>(state_->count));
    state_->mark(&state_->bits);
    state_->mark = nullptr;
  }
  return state_->bits[static_cast<std::size_t>(row)];
}

UsedRows find_used(const DeviceArray& array, const UsedRows& used, int64_t count,
                   std::function<Range(int64_t)> find_rows) {
  return {count, [array, used, find_rows = std::move(find_rows)](std::vector<bool>* bits) {
            const RowValidity is_valid(array);
            for (int64_t i = 0; i < array.length(); ++i) {
              if (!is_valid[i] || !used[i]) continue;
              const Range rows = find_rows(i);
              std::fill_n(bits->begin() + rows.start, rows.length, true);
            }
          }};
}

UsedRows find_used_values(const DeviceArray& array, const UsedRows& used) {
  const int64_t count = array.dictionary().length();
  return find_used(array, used, count,
                   [array, count](int64_t i) { return Range{read_index(array, i, count), 1}; });
}

UsedRows find_used_runs(const DeviceArray& array, const UsedRows& used) {
  return find_used(array, used, array.child(1).length(), [array](int64_t i) {
    return visit_run_ends(array.type(), [&](auto zero) {
      return RunReader<decltype(zero)>(array).find_runs(Range{i, 1});
    });
  });
}

ARROWDL_END_NAMESPACE
