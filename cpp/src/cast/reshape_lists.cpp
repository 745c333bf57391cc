// Nests values in fixed-size lists, and takes them out of these.
#include "cast/reshape_lists.hpp"

#include "array/row_access.hpp"
#include "cast/misfit.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Raises Misfit if a list of `used` is null.
void check_lists(const DeviceArray& lists, const UsedRows& used) {
  const RowValidity is_valid(lists);
  for (int64_t i = 0; i < lists.length(); ++i) {
    if (is_valid[i] || !used[i]) continue;
    raise_misfit("lists of ", to_string(lists.type()), " are null, and the element of a tensor ",
                 "that contains them is not null as a whole: fill them, or request nested lists");
  }
}

}  // namespace

OwnedArray nest_values(OwnedArray values, const Type& to, std::size_t depth, int64_t length) {
  if (depth == 0) return values;
  ArrayParts parts;
  parts.length = length;
  parts.buffers.push_back(Buffer());
  parts.children.push_back(
      nest_values(std::move(values), to.children[0], depth - 1, length * to.list_size));
  return make_array(std::move(parts));
}

DeviceArray flatten_lists(DeviceArray lists, std::size_t depth, UsedRows used) {
  for (; depth > 0; --depth) {
    check_lists(lists, used);
    const int64_t size = lists.type().list_size;
    used = find_used(lists, used, lists.length() * size,
                     [size](int64_t i) { return Range{i * size, size}; });
    lists = lists.child(0);
  }
  return lists;
}

ARROWDL_END_NAMESPACE
