// Checks the type and the order of list offsets.
#include "compute/list_offsets.hpp"

#include "array/host_access.hpp"
#include "array/row_access.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

bool is_offset(const Type& type) {
  return type.dictionary == nullptr && type.dtype != nullptr &&
         (type.dtype == find_dtype("int32") || type.dtype == find_dtype("int64"));
}

template <typename Offset>
void check_ascending(const DeviceArray& offsets, int64_t value_count) {
  const ElementReader<Offset> elements(offsets, 1);
  Offset previous = 0;
  for (int64_t i = 0; i < offsets.length(); ++i) {
    const Offset offset = elements[i];
    if (offset < previous || offset > value_count) {
      raise_value_error("offset ", i, " is ", offset, " after ", previous,
                        ": list offsets must ascend from 0 on within the ", value_count, " values");
    }
    previous = offset;
  }
}

}  // namespace

void check_list_offsets(const DeviceArray& offsets, int64_t value_count) {
  if (!is_offset(offsets.type())) {
    raise_type_error("list offsets must be int32 or int64, not ", to_string(offsets.type()));
  }
  if (offsets.length() == 0) {
    raise_value_error("list offsets are empty: n lists have n + 1 offsets");
  }
  require_host_readable(offsets, "read list offsets");
  if (offsets.has_nulls()) raise_value_error("list offsets must not be null");
  visit_list_offsets(offsets,
                     [&](auto zero) { check_ascending<decltype(zero)>(offsets, value_count); });
}

ARROWDL_END_NAMESPACE
