// Looks for null rows, also in dictionaries and runs.
#include "cast/has_null_rows.hpp"

#include <algorithm>
#include <vector>

#include "array/row_access.hpp"
#include "array/run_ends.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::optional<bool> has_unset_validity(const DeviceArray& array) {
  if (is_host_readable(array.device())) return array.has_nulls();
  const int64_t known = array.known_null_count();
  return known < 0 ? std::nullopt : std::optional<bool>(known > 0);
}

std::vector<bool> find_null_rows(const DeviceArray& array);

/// Adds to `nulls` the rows whose dictionary value is null.
void add_null_values(const DeviceArray& array, std::vector<bool>* nulls) {
  const DeviceArray values = array.dictionary();
  const std::vector<bool> is_null = find_null_rows(values);
  for (int64_t i = 0; i < array.length(); ++i) {
    const auto row = static_cast<std::size_t>(i);
    if ((*nulls)[row]) continue;
    (*nulls)[row] = is_null[static_cast<std::size_t>(read_index(array, i, values.length()))];
  }
}

/// Adds to `nulls` the rows of null runs.
void add_null_runs(const DeviceArray& array, std::vector<bool>* nulls) {
  const Range rows{0, array.length()};
  visit_run_ends(array.type(), [&](auto zero) {
    const RunReader<decltype(zero)> reader(array);
    const Range runs = reader.find_runs(rows);
    const std::vector<bool> is_null = find_null_rows(array.child(1).slice(runs.start, runs.length));
    int64_t row = 0;
    for (int64_t i = 0; i < runs.length; ++i) {
      const int64_t end = reader.end_within(runs.start + i, rows);
      for (; row < end; ++row) {
        (*nulls)[static_cast<std::size_t>(row)] = is_null[static_cast<std::size_t>(i)];
      }
    }
  });
}

/// Which rows of `array`, in host memory, are null.
std::vector<bool> find_null_rows(const DeviceArray& array) {
  std::vector<bool> nulls(static_cast<std::size_t>(array.length()),
                          array.type().layout == Layout::kNull);
  if (array.length() == 0) return nulls;
  if (array.validity() != nullptr) {
    for_each_unset_bit(array.validity(), array.offset(), array.length(),
                       [&](int64_t i) { nulls[static_cast<std::size_t>(i)] = true; });
  }
  if (array.type().dictionary != nullptr) add_null_values(array, &nulls);
  if (array.type().layout == Layout::kRunEndEncoded) add_null_runs(array, &nulls);
  return nulls;
}

std::optional<bool> has_null_values(const DeviceArray& array) {
  const std::optional<bool> is_null = has_unset_validity(array);
  if (is_null.value_or(true)) return is_null;
  const DeviceArray values = array.dictionary();
  const std::optional<bool> has_nulls = has_null_rows(values);
  if (!has_nulls.value_or(true)) return false;
  if (!is_host_readable(array.device())) return std::nullopt;
  const std::vector<bool> nulls = find_null_rows(array);
  return std::find(nulls.begin(), nulls.end(), true) != nulls.end();
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

ARROWDL_END_NAMESPACE
