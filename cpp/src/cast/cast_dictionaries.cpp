#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "array/row_access.hpp"
#include "cast/cast.hpp"
#include "compute/gather.hpp"
#include "compute/row_encoder.hpp"
#include "compute/take.hpp"
#include "schema/copy_schema.hpp"
#include "util/visit_integer.hpp"

namespace arrowdl {
namespace {

DeviceArray import_as(const Type& type, OwnedArray array) {
  return DeviceArray::import(copy_schema(*type.schema), std::move(array));
}

/// An index that may be of a row under a null, where it need not be one.
int64_t find_value(const DeviceArray& array, int64_t row, int64_t dictionary_length) {
  try {
    return read_index(array, row, dictionary_length);
  } catch (const Error& error) {
    throw Misfit(error.what());
  }
}

/// Where each row's value lies in the dictionary; a null row's is the first one.
std::vector<RowPlace> find_places(const DeviceArray& array, int64_t dictionary_length) {
  if (dictionary_length > std::numeric_limits<uint32_t>::max()) {
    raise_misfit("a dictionary of ", dictionary_length, " values is not decoded");
  }
  std::vector<RowPlace> places;
  places.reserve(static_cast<std::size_t>(array.length()));
  const RowValidity is_valid(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t row = is_valid[i] ? find_value(array, i, dictionary_length) : 0;
    places.push_back(RowPlace{0, static_cast<uint32_t>(row)});
  }
  return places;
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
                 " can count");
  }
  Index* target = nullptr;
  Buffer indices = allocate_elements(static_cast<int64_t>(index.size()), &target);
  for (const int64_t i : index) *target++ = static_cast<Index>(i);
  return indices;
}

}  // namespace

OwnedArray decode_dictionary(const DeviceArray& array, const Type& to) {
  const DeviceArray dictionary = array.dictionary();
  const std::vector<RowPlace> places = find_places(array, dictionary.length());
  if (dictionary.length() == 0) return make_nulls(to, array.length());
  if (!to.has_validity() && to.layout != Layout::kNull && array.has_nulls()) {
    raise_misfit("null rows of a dictionary are none of ", to_string(to));
  }
  const DeviceArray values = import_as(to, cast_rows(dictionary, to, false));
  const DeviceArray taken =
      import_as(to, take_rows({values}, {places.data(), static_cast<int64_t>(places.size())}));
  return share_array(taken.with_nulls_of(array));
}

void encode_dictionary(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  const Type& type = *to.dictionary;
  const DeviceArray values = import_as(type, cast_rows(array, type, false));
  const Distinct distinct = find_distinct(values);
  const int64_t count = count_rows(distinct.values);
  parts->buffers.push_back(visit_integer(to.schema->format, [&](auto zero) {
    return write_indices<decltype(zero)>(distinct.index, count, to);
  }));
  parts->dictionary = gather_rows({values}, distinct.values);
}

OwnedArray make_nulls(const Type& type, int64_t length) {
  if (!can_be_null(type)) raise_misfit("nulls of ", to_string(type), " are not made");
  OwnedArray nulls;
  ArrowError error;
  int code = ArrowArrayInitFromSchema(nulls.get(), type.schema, &error);
  if (code == NANOARROW_OK) code = ArrowArrayStartAppending(nulls.get());
  if (code == NANOARROW_OK) code = ArrowArrayAppendNull(nulls.get(), length);
  if (code == NANOARROW_OK) code = ArrowArrayFinishBuildingDefault(nulls.get(), &error);
  if (code == ENOMEM) throw std::bad_alloc();
  if (code != NANOARROW_OK) raise_misfit("nulls of ", to_string(type), " are not made");
  return nulls;
}

}  // namespace arrowdl
