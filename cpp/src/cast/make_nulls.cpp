// Makes arrays of nulls.
#include "cast/make_nulls.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include "cast/misfit.hpp"
#include "schema/layout_families.hpp"

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
