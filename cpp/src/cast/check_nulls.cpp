// Checks that fields which are requested as not nullable have no nulls.
#include "cast/check_nulls.hpp"

#include "array/null_rows.hpp"
#include "array/row_access.hpp"
#include "arrowdl/error.hpp"
#include "cast/find_fit.hpp"
#include "cast/misfit.hpp"
#include "schema/layout.hpp"
#include "schema/layout_families.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Whether a null row of `array`, in host memory, counts.
bool has_used_nulls(const DeviceArray& array, const UsedRows& used) {
  const NullRows is_null(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (is_null[i] && used[i]) return true;
  }
  return false;
}

/// The rows of child `i` of a union that count: those of the rows with its type id.
UsedRows find_used_members(const DeviceArray& array, const UsedRows& used, int64_t i) {
  const int64_t count = array.child(i).length();
  const bool is_dense = array.type().layout == Layout::kDenseUnion;
  return find_used(array, used, count, [array, count, i, is_dense](int64_t row) {
    if (read_union_child(array, row) != i) return Range{};
    return Range{is_dense ? read_union_row(array, row, count) : row, 1};
  });
}

/// The child rows between the first and the last offset of a list; all of them where the host
/// cannot tell.
Range find_window(const DeviceArray& array) {
  const Range all{0, array.child(0).length()};
  if (!layout_row(array.type().layout).has_offsets() || !is_host_readable(array.device())) {
    return all;
  }
  if (array.length() == 0) return Range{};
  return visit_offset(array.type(), [&](auto zero) {
    return read_offsets<decltype(zero)>(array, Range{0, array.length()}, all.length);
  });
}

/// The items of the window of a list, of which no others are checked.
void check_nulls_of_items(const DeviceArray& array, const Type& to, const UsedRows& used) {
  const DeviceArray items = array.child(0);
  const Range window = find_window(array);
  const UsedRows used_items =
      find_used(array, used, window.length, [array, count = items.length(), window](int64_t row) {
        const Range rows = read_list(array, row, count);
        return Range{rows.length == 0 ? 0 : rows.start - window.start, rows.length};
      });
  check_nulls_of_tree(items.slice(window.start, window.length), to.children[0], used_items);
}

/// The rows that count in child `i` of an array that is not a list.
UsedRows find_used_rows_of(const DeviceArray& array, const UsedRows& used, int64_t i) {
  if (is_union(array.type())) return find_used_members(array, used, i);
  if (array.type().layout == Layout::kRunEndEncoded) {
    return i == 0 ? UsedRows() : find_used_runs(array, used);
  }
  if (has_whole_children(array, used.is_whole())) return used;
  return find_used(array, used, array.length(), [](int64_t row) { return Range{row, 1}; });
}

}  // namespace

void check_nulls(const DeviceArray& array, const Type& to, const UsedRows& used) {
  if (to.is_nullable() || !array.type().is_nullable()) return;
  const std::optional<bool> has_nulls = has_null_rows(array);
  if (!has_nulls.value_or(true)) return;
  const bool is_blind = !used.is_whole() && !is_host_readable(array.device());
  if (!has_nulls || is_blind || !has_used_nulls(array, used)) {
    raise_undecided("the field \"", array.type().name(), "\" is requested as not nullable and ",
                    !has_nulls ? "its nulls are not counted"
                    : is_blind ? "has nulls that may not count"
                               : "has nulls that do not count");
  }
  raise_value_error("the requested schema is incompatible with the data: the field \"",
                    array.type().name(), "\" of ", to_string(array.type()),
                    " has nulls and is requested as not nullable; fill or drop them first, or "
                    "request a nullable field");
}

bool has_whole_children(const DeviceArray& array, bool is_whole) {
  if (!is_whole) return false;
  return is_host_readable(array.device()) ? !array.has_nulls() : array.known_null_count() == 0;
}

void check_nulls_of_tree(const DeviceArray& array, const Type& to, const UsedRows& used) {
  check_nulls(array, to, used);
  if (!narrows_nullability(array.type(), to)) return;
  if (to.dictionary != nullptr) {
    check_nulls_of_tree(array.dictionary(), *to.dictionary, find_used_values(array, used));
  }
  if (is_list(array.type())) return check_nulls_of_items(array, to, used);
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    check_nulls_of_tree(array.child(number), to.children[i],
                        find_used_rows_of(array, used, number));
  }
}

ARROWDL_END_NAMESPACE
