// Decodes dictionary arrays, and encodes values as indices.
#include <limits>
#include <string_view>
#include <unordered_map>

#include "array/row_access.hpp"
#include "cast/casts.hpp"
#include "cast/misfit.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/encoded_rows.hpp"
#include "compute/gather.hpp"
#include "schema/make_schema.hpp"
#include "util/visit_width.hpp"

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

/// The distinct rows of an array, in the order of their first appearance.
struct Distinct {
  std::vector<RowRange> values;
  std::vector<int64_t> index;  ///< of each row; 0 for null ones
};

Distinct find_distinct(const DeviceArray& values) {
  const EncodedRows rows(values);
  const RowValidity is_valid(values);
  Distinct distinct;
  distinct.index.reserve(static_cast<std::size_t>(values.length()));
  std::unordered_map<std::string_view, int64_t> index_of;
  for (int64_t i = 0; i < values.length(); ++i) {
    if (!is_valid[i]) {
      distinct.index.push_back(0);
      continue;
    }
    const auto next = static_cast<int64_t>(index_of.size());
    const auto [at, is_new] = index_of.try_emplace(rows[i], next);
    if (is_new) append_range(&distinct.values, 0, Range{i, 1});
    distinct.index.push_back(at->second);
  }
  return distinct;
}

template <typename Index>
Buffer write_indices(const std::vector<int64_t>& index, int64_t value_count, const Type& to) {
  if (value_count > 0 && static_cast<uint64_t>(value_count - 1) >
                             static_cast<uint64_t>(std::numeric_limits<Index>::max())) {
    raise_misfit(value_count, " distinct values are more than the indices of ", to_string(to),
                 " can count: request wider indices, or the values");
  }
  Index* target = nullptr;
  Buffer indices = allocate_elements(static_cast<int64_t>(index.size()), &target);
  for (const int64_t i : index) *target++ = static_cast<Index>(i);
  return indices;
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

void encode_dictionary(const DeviceArray& values, const Type& to, ArrayParts* parts) {
  const Distinct distinct = find_distinct(values);
  const int64_t count = count_rows(distinct.values);
  parts->buffers.push_back(visit_integer(to.schema->format, [&](auto zero) {
    return write_indices<decltype(zero)>(distinct.index, count, to);
  }));
  parts->dictionary = gather({values}, distinct.values);
}

ARROWDL_END_NAMESPACE
