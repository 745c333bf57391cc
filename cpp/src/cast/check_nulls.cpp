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

/// The values that the rows of a list refer to. If the host cannot tell, all values, and sets
/// `*is_whole` to false.
DeviceArray find_items(const DeviceArray& array, bool* is_whole) {
  DeviceArray items = array.child(0);
  const Layout layout = array.type().layout;
  if (layout == Layout::kFixedSizeList) return items;
  if (!layout_row(layout).has_offsets() || !is_host_readable(array.device())) {
    *is_whole = false;
    return items;
  }
  if (array.length() == 0) return items.slice(0, 0);
  const Range rows{0, array.length()};
  const Range used = visit_offset(array.type(), [&](auto zero) {
    return read_offsets<decltype(zero)>(array, rows, items.length());
  });
  return items.slice(used.start, used.length);
}

}  // namespace

void check_nulls(const DeviceArray& array, const Type& to, bool is_whole) {
  if (to.is_nullable() || !array.type().is_nullable()) return;
  const std::optional<bool> has_nulls = has_null_rows(array);
  if (!has_nulls.value_or(true)) return;
  if (!has_nulls || !is_whole) {
    raise_undecided("the field \"", array.type().name(), "\" is requested as not nullable and ",
                    has_nulls ? "has nulls that may not count" : "its nulls are not counted");
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

void check_nulls_of_tree(const DeviceArray& array, const Type& to, bool is_whole) {
  check_nulls(array, to, is_whole);
  if (!narrows_nullability(array.type(), to)) return;
  bool is_child_whole = has_whole_children(array, is_whole);
  if (to.dictionary != nullptr) check_nulls_of_tree(array.dictionary(), *to.dictionary, false);
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    const bool is_item = is_list(array.type());
    const DeviceArray child =
        is_item ? find_items(array, &is_child_whole) : array.child(static_cast<int64_t>(i));
    const bool is_field = is_item || array.type().layout == Layout::kStruct;
    check_nulls_of_tree(child, to.children[i], is_field && is_child_whole);
  }
}

ARROWDL_END_NAMESPACE
