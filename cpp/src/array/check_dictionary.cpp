// Refuses codes of null values.
#include "array/check_dictionary.hpp"

#include "array/row_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

namespace {

/// Whether a row that is not null has a null value.
bool has_null_values(const DeviceArray& codes) {
  const DeviceArray values = codes.dictionary();
  if (!values.has_nulls()) return false;
  if (!is_host_readable(codes.device()) || values.type().layout == Layout::kNull) return true;
  const RowValidity is_row(codes);
  const RowValidity is_value(values);
  for (int64_t i = 0; i < codes.length(); ++i) {
    if (is_row[i] && !is_value[read_index(codes, i, values.length())]) return true;
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
