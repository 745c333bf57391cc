// Refuses codes of null values.
#include "array/check_dictionary.hpp"

#include "array/null_rows.hpp"
#include "array/row_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

namespace {

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

void check_dictionary(const DeviceArray& array) {
  if (array.type().dictionary == nullptr || !has_null_values(array)) return;
  raise_buffer_error("the dictionary of ", to_string(array.type()),
                     " has nulls among its values, which the codes alone would hide: decode it, or "
                     "take the codes as `indices` and the values as `dictionary`");
}

ARROWDL_END_NAMESPACE
