// Folds the nulls of a struct into its fields.
#include "cast/fold_nulls.hpp"

#include "cast/copy_validity.hpp"

ARROWDL_BEGIN_NAMESPACE

DeviceArray fold_nulls(const DeviceArray& array) {
  if (array.type().layout != Layout::kStruct || !is_host_readable(array.device())) return array;
  if (!array.has_nulls()) return array;
  ArrayParts parts;
  parts.length = array.length();
  parts.buffers.push_back(copy_validity(array, &parts.null_count));
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    const DeviceArray child = array.child(static_cast<int64_t>(i));
    const bool has_bitmap = child.type().has_validity();
    parts.children.push_back(share_array(has_bitmap ? child.with_nulls_of(array) : child));
  }
  return DeviceArray::import(array.export_schema(), make_array(std::move(parts)), array.device());
}

ARROWDL_END_NAMESPACE
