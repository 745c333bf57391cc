// Decodes dictionary arrays.
#include "cast/decode_dictionary.hpp"

#include <limits>

#include "array/row_access.hpp"
#include "cast/misfit.hpp"
#include "schema/copy_schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// A malformed index may belong to a row under a null: then it is not an error of the request.
int64_t find_value(const DeviceArray& array, int64_t row, int64_t dictionary_length) {
  try {
    return read_index(array, row, dictionary_length);
  } catch (const Error& error) {
    throw Undecided(error.what());
  }
}

}  // namespace

std::vector<RowIndex> find_dictionary_rows(const DeviceArray& array, int64_t dictionary_length) {
  if (dictionary_length > std::numeric_limits<uint32_t>::max()) {
    raise_misfit("a dictionary of ", dictionary_length, " values is too long to be decoded");
  }
  std::vector<RowIndex> rows;
  rows.reserve(static_cast<std::size_t>(array.length()));
  const RowValidity is_valid(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t row = is_valid[i] ? find_value(array, i, dictionary_length) : 0;
    rows.push_back(RowIndex{0, static_cast<uint32_t>(row)});
  }
  return rows;
}

OwnedArray decode_dictionary(const DeviceArray& array, const DeviceArray& values,
                             const std::vector<RowIndex>& rows) {
  const Type& to = values.type();
  if (!to.has_validity() && to.layout != Layout::kNull && array.has_nulls()) {
    raise_undecided("null rows of a dictionary cannot be rows of ", to_string(to));
  }
  const DeviceArray taken = DeviceArray::import(
      copy_schema(*to.schema), take({values}, {rows.data(), static_cast<int64_t>(rows.size())}));
  return share_array(taken.with_nulls_of(array));
}

ARROWDL_END_NAMESPACE
