// Rows, and fields of structs, in the form that tensors are made of.
#include "compute/plain_rows.hpp"

#include <cstring>
#include <utility>

#include "array/host_access.hpp"
#include "array/null_rows.hpp"
#include "array/row_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/error.hpp"
#include "schema/make_schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

bool is_lists(const Type& type) {
  return type.layout == Layout::kFixedSizeList && type.dtype == nullptr &&
         type.dictionary == nullptr;
}

/// Whether the rows of `type`, or its items, are codes.
bool has_codes(const Type& type) {
  const Type* node = &type;
  while (is_lists(*node)) node = &node->children[0];
  return node->dictionary != nullptr;
}

/// Codes whose null values are null rows.
DeviceArray fold_values(const DeviceArray& codes) {
  if (!is_host_readable(codes.device())) return codes;
  codes.synchronize();
  const DeviceArray values = codes.dictionary();
  if (!has_null_rows(values).value_or(true)) return codes;
  const RowValidity is_row(codes);
  const NullRows is_null(values);
  uint8_t* bits;
  Buffer validity = Buffer::allocate(bitmap_size(codes.length()), &bits);
  std::memset(bits, 0, static_cast<std::size_t>(bitmap_size(codes.length())));
  int64_t null_count = 0;
  for (int64_t i = 0; i < codes.length(); ++i) {
    if (is_row[i] && !is_null[read_index(codes, i, values.length())]) {
      bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | (1 << (i % 8)));
    } else {
      ++null_count;
    }
  }
  return codes.with_validity(std::move(validity), null_count);
}

/// Lists of `items`, with the validity of `lists`.
DeviceArray replace_items(const DeviceArray& lists, const DeviceArray& items) {
  OwnedSchema schema = copy_schema(*lists.type().schema);
  replace_child(schema, items.export_schema());
  // A bitmap starts at a byte, so the items start at the row of its first bit.
  const int64_t lead = lists.validity() == nullptr ? 0 : lists.offset();
  ArrayParts parts;
  parts.length = lists.length();
  parts.offset = lead;
  parts.null_count = lists.known_null_count();
  parts.buffers.push_back(Buffer(lists.storage(), lists.validity(), 0));
  parts.children.push_back(share_array(items));
  return items.derive(std::move(schema), make_array(std::move(parts)));
}

}  // namespace

bool has_inner_runs(const Type& type) {
  const Type* node = &type;
  while (is_lists(*node)) node = &node->children[0];
  return node != &type && node->layout == Layout::kRunEndEncoded;
}

DeviceArray plain_rows(const DeviceArray& array) {
  const Type& type = array.type();
  if (type.dictionary != nullptr) return fold_values(array);
  if (!has_inner_runs(type) && !(is_lists(type) && has_codes(type))) return array;
  const int64_t lead = array.validity() == nullptr ? 0 : array.offset();
  const DeviceArray own = array.widened(lead).child(0);
  const bool is_run = own.type().layout == Layout::kRunEndEncoded;
  const DeviceArray items = plain_rows(is_run ? decode_run_ends(own) : own);
  if (items.storage() == own.storage()) return array;
  return replace_items(array, items);
}

DeviceArray read_field(const DeviceArray& array, int64_t i) {
  if (array.type().layout != Layout::kStruct) return array.field(i);  // raises
  DeviceArray field = array.child(i);
  if (field.type().layout == Layout::kRunEndEncoded) field = decode_run_ends(field);
  if (!has_plain_rows(field.type())) field = plain_rows(field);
  if (array.known_null_count() == 0) return field;
  return field.with_nulls_of(array);
}

ARROWDL_END_NAMESPACE
