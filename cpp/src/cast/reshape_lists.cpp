// Nests values in fixed-size lists, and takes them out of these.
#include "cast/reshape_lists.hpp"

#include "cast/misfit.hpp"

ARROWDL_BEGIN_NAMESPACE

OwnedArray nest_values(OwnedArray values, const Type& to, std::size_t depth, int64_t length) {
  if (depth == 0) return values;
  ArrayParts parts;
  parts.length = length;
  parts.buffers.push_back(Buffer());
  parts.children.push_back(
      nest_values(std::move(values), to.children[0], depth - 1, length * to.list_size));
  return make_array(std::move(parts));
}

DeviceArray flatten_lists(DeviceArray lists, std::size_t depth) {
  for (; depth > 0; --depth) {
    if (lists.has_nulls()) {
      raise_misfit("lists of ", to_string(lists.type()), " are null, and the element of a tensor ",
                   "that contains them is not null as a whole");
    }
    lists = lists.child(0);
  }
  return lists;
}

ARROWDL_END_NAMESPACE
