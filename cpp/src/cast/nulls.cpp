// Copies bitmaps, folds them into fields, makes arrays of nulls.
#include "cast/nulls.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include "cast/misfit.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Whether rows of `type` need no values: indices need a dictionary value, and run ends a run.
bool has_default(const Type& type) {
  if (type.dictionary != nullptr || type.layout == Layout::kRunEndEncoded) return false;
  const bool has_rows =
      type.layout == Layout::kStruct || type.layout == Layout::kFixedSizeList || is_union(type);
  return !has_rows || std::all_of(type.children.begin(), type.children.end(), has_default);
}

}  // namespace

Buffer copy_validity(const DeviceArray& array, int64_t* null_count) {
  *null_count = 0;
  if (array.validity() == nullptr || array.length() == 0) return {};
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(array.length()), &target);
  copy_bits(array.validity(), array.offset(), array.length(), target);
  *null_count = array.length() - count_set_bits(target, 0, array.length());
  return *null_count == 0 ? Buffer() : bits;
}

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

bool can_be_null(const Type& type) {
  if (!type.has_validity()) return type.layout == Layout::kNull;
  const bool has_rows = type.layout == Layout::kStruct || type.layout == Layout::kFixedSizeList;
  return !has_rows || std::all_of(type.children.begin(), type.children.end(), has_default);
}

OwnedArray make_nulls(const Type& type, int64_t length) {
  if (!can_be_null(type)) raise_undecided("nulls of ", to_string(type), " are not supported");
  OwnedArray nulls;
  ArrowError error;
  int code = ArrowArrayInitFromSchema(nulls.get(), type.schema, &error);
  if (code == NANOARROW_OK) code = ArrowArrayStartAppending(nulls.get());
  if (code == NANOARROW_OK) code = ArrowArrayAppendNull(nulls.get(), length);
  if (code == NANOARROW_OK) code = ArrowArrayFinishBuildingDefault(nulls.get(), &error);
  if (code == ENOMEM) throw std::bad_alloc();
  if (code != NANOARROW_OK) raise_undecided("nulls of ", to_string(type), " are not supported");
  return nulls;
}

ARROWDL_END_NAMESPACE
