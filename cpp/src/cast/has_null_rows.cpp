// Looks for null rows, also for those that have no validity bit of their own.
#include "cast/has_null_rows.hpp"

#include <vector>

#include "array/row_access.hpp"
#include "array/run_ends.hpp"

namespace arrowdl {
namespace {

std::optional<bool> has_unset_validity(const DeviceArray& array) {
  if (is_host_readable(array.device())) return array.has_nulls();
  const int64_t known = array.known_null_count();
  return known < 0 ? std::nullopt : std::optional<bool>(known > 0);
}

/// Which rows of `values`, in host memory, are null.
std::vector<bool> find_null_rows(const DeviceArray& values) {
  std::vector<bool> nulls;
  nulls.reserve(static_cast<std::size_t>(values.length()));
  for (int64_t i = 0; i < values.length(); ++i) {
    nulls.push_back(has_null_rows(values.slice(i, 1)).value_or(false));
  }
  return nulls;
}

/// Whether an index, none of which is null, is of a null value.
bool has_null_values(const DeviceArray& array, const DeviceArray& values) {
  const std::vector<bool> is_null = find_null_rows(values);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (is_null[static_cast<std::size_t>(read_index(array, i, values.length()))]) return true;
  }
  return false;
}

std::optional<bool> has_null_values(const DeviceArray& array) {
  const std::optional<bool> is_null = has_unset_validity(array);
  if (is_null.value_or(true)) return is_null;
  const DeviceArray values = array.dictionary();
  const std::optional<bool> has_nulls = has_null_rows(values);
  if (!has_nulls.value_or(true)) return false;
  if (!is_host_readable(array.device())) return std::nullopt;
  return has_null_values(array, values);
}

std::optional<bool> has_null_runs(const DeviceArray& array) {
  const DeviceArray values = array.child(1);
  const std::optional<bool> has_nulls = has_null_rows(values);
  if (!has_nulls.value_or(true)) return false;
  if (!is_host_readable(array.device())) return std::nullopt;
  const Range runs = visit_run_ends(array.type(), [&](auto zero) {
    return RunReader<decltype(zero)>(array).find_runs(Range{0, array.length()});
  });
  return has_null_rows(values.slice(runs.start, runs.length));
}

}  // namespace

std::optional<bool> has_null_rows(const DeviceArray& array) {
  if (array.length() == 0) return false;
  const bool has_dictionary = array.type().dictionary != nullptr;
  const bool has_runs = array.type().layout == Layout::kRunEndEncoded;
  if (!has_dictionary && !has_runs) return has_unset_validity(array);
  if (is_host_readable(array.device())) array.synchronize();
  return has_dictionary ? has_null_values(array) : has_null_runs(array);
}

}  // namespace arrowdl
