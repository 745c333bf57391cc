// Finds null rows, also those whose value in a dictionary is null.
#include "array/null_rows.hpp"

#include "array/run_ends.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::optional<bool> has_unset_validity(const DeviceArray& array) {
  if (is_host_readable(array.device())) return array.has_nulls();
  const int64_t known = array.known_null_count();
  return known < 0 ? std::nullopt : std::optional<bool>(known > 0);
}

/// Arrays of which some rows are the rows of `array`, beside those that are null by a bitmap.
std::vector<DeviceArray> list_values(const DeviceArray& array) {
  if (array.type().dictionary != nullptr) return {array.dictionary()};
  if (array.type().layout == Layout::kRunEndEncoded) return {array.child(1)};
  std::vector<DeviceArray> members;
  if (!is_union(array.type())) return members;
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    members.push_back(array.child(static_cast<int64_t>(i)));
  }
  return members;
}

/// Whether one of `values` has a null row, also a row that no code or run refers to.
std::optional<bool> have_null_rows(const std::vector<DeviceArray>& values) {
  std::optional<bool> have = false;
  for (const DeviceArray& rows : values) {
    const std::optional<bool> has = has_null_rows(rows);
    if (has.value_or(false)) return true;
    if (!has) have = std::nullopt;
  }
  return have;
}

bool has_null_runs(const DeviceArray& array) {
  const Range runs = visit_run_ends(array.type(), [&](auto zero) {
    return RunReader<decltype(zero)>(array).find_runs(Range{0, array.length()});
  });
  return has_null_rows(array.child(1).slice(runs.start, runs.length)).value_or(true);
}

bool finds_null_rows(const DeviceArray& array) {
  if (array.type().layout == Layout::kRunEndEncoded) return has_null_runs(array);
  const NullRows is_null(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (is_null[i]) return true;
  }
  return false;
}

/// Whether `values`, in memory that the host cannot read, have nulls, or may have some.
bool may_have_nulls(const DeviceArray& values) {
  const bool has_bitmap_only = values.type().dictionary == nullptr && values.type().has_validity();
  return has_null_rows(values).value_or(!has_bitmap_only || values.has_nulls());
}

/// Whether a row that is not null has a null value.
bool has_null_values(const DeviceArray& codes) {
  const DeviceArray values = codes.dictionary();
  if (!is_host_readable(codes.device())) return may_have_nulls(values);
  if (!has_null_rows(values).value_or(true)) return false;
  const RowValidity is_row(codes);
  const NullRows is_null(values);
  for (int64_t i = 0; i < codes.length(); ++i) {
    if (is_row[i] && is_null[read_index(codes, i, values.length())]) return true;
  }
  return false;
}

}  // namespace

NullRows::NullRows(const DeviceArray& array) : array_(array), is_valid_(array) {
  for (const DeviceArray& values : list_values(array)) values_.emplace_back(values);
}

bool NullRows::operator[](int64_t i) const {
  if (array_.type().layout == Layout::kNull || !is_valid_[i]) return true;
  return !values_.empty() && is_null_value(i);
}

bool NullRows::is_null_value(int64_t i) const {
  if (array_.type().dictionary != nullptr) {
    return values_[0][read_index(array_, i, values_[0].array_.length())];
  }
  if (array_.type().layout == Layout::kRunEndEncoded) {
    return values_[0][visit_run_ends(array_.type(), [&](auto zero) {
      return RunReader<decltype(zero)>(array_).find_runs(Range{i, 1}).start;
    })];
  }
  const NullRows& member = values_[static_cast<std::size_t>(read_union_child(array_, i))];
  const bool is_dense = array_.type().layout == Layout::kDenseUnion;
  return member[is_dense ? read_union_row(array_, i, member.array_.length()) : i];
}

std::optional<bool> has_null_rows(const DeviceArray& array) {
  if (array.length() == 0) return false;
  const std::vector<DeviceArray> values = list_values(array);
  if (values.empty()) return has_unset_validity(array);
  const bool is_here = is_host_readable(array.device());
  if (is_here) array.synchronize();
  const std::optional<bool> is_unset = has_unset_validity(array);
  if (is_unset.value_or(true)) return is_unset;
  const std::optional<bool> have_nulls = have_null_rows(values);
  if (!have_nulls.value_or(true)) return false;
  return is_here ? std::optional<bool>(finds_null_rows(array)) : std::nullopt;
}

void check_dictionary(const DeviceArray& array) {
  if (array.type().dictionary == nullptr || !has_null_values(array)) return;
  raise_buffer_error("the dictionary of ", to_string(array.type()),
                     " has nulls among its values, which the codes alone would hide: decode it, or "
                     "take the codes as `indices` and the values as `dictionary`");
}

ARROWDL_END_NAMESPACE
