// Finds the fields of a table that are columns, and selects fields of a struct.
#include "compute/select_fields.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "arrowdl/error.hpp"
#include "schema/make_schema.hpp"
#include "util/json.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// How pyarrow and pandas name the field of an index without a name, before its level.
constexpr std::string_view kIndexPrefix = "__index_level_";

bool may_be_index(const Type& field) {
  return std::strncmp(field.name(), kIndexPrefix.data(), kIndexPrefix.size()) == 0;
}

const std::vector<JsonValue>& items_of(const JsonValue& object, const char* key) {
  static const std::vector<JsonValue> none;
  const JsonValue* array = object.find(key);
  return array != nullptr && array->kind == JsonValue::Kind::kArray ? array->items : none;
}

bool is_text(const JsonValue* value, std::string_view text) {
  return value != nullptr && value->kind == JsonValue::Kind::kString && value->text == text;
}

/// Whether the metadata says that the field `name` is an index without a name.
bool is_unnamed_index(const JsonValue& metadata, std::string_view name) {
  const std::vector<JsonValue>& indexes = items_of(metadata, "index_columns");
  const auto is_name = [&](const JsonValue& index) { return is_text(&index, name); };
  if (std::none_of(indexes.begin(), indexes.end(), is_name)) return false;
  for (const JsonValue& column : items_of(metadata, "columns")) {
    if (!is_text(column.find("field_name"), name)) continue;
    const JsonValue* own = column.find("name");
    return own == nullptr || own->kind == JsonValue::Kind::kNull;
  }
  return false;
}

/// The JSON of pandas; null where it has none that can be read, which says nothing.
JsonValue read_pandas(const ArrowSchema& schema) {
  const std::optional<std::string_view> text = find_metadata(schema, kPandasKey);
  if (!text) return {};
  try {
    return parse_json(*text);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<int64_t> find_columns(const Type& type) {
  const std::vector<Type>& fields = type.children;
  std::vector<int64_t> columns;
  if (type.layout != Layout::kStruct || std::none_of(fields.begin(), fields.end(), may_be_index)) {
    return columns;
  }
  const JsonValue metadata = read_pandas(*type.schema);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (may_be_index(fields[i]) && is_unnamed_index(metadata, fields[i].name())) continue;
    columns.push_back(static_cast<int64_t>(i));
  }
  if (columns.size() == fields.size()) columns.clear();
  return columns;
}

namespace {

/// Copies the metadata of a schema, without that of pandas.
void copy_metadata(const ArrowSchema& from, ArrowSchema* to) {
  if (from.metadata == nullptr) return;
  nanoarrow::UniqueBuffer metadata;
  if (ArrowMetadataBuilderInit(metadata.get(), from.metadata) != NANOARROW_OK ||
      ArrowMetadataBuilderRemove(metadata.get(), ArrowCharView(kPandasKey)) != NANOARROW_OK ||
      ArrowSchemaSetMetadata(to, reinterpret_cast<const char*>(metadata->data)) != NANOARROW_OK) {
    throw std::bad_alloc();
  }
}

}  // namespace

std::shared_ptr<const ParsedSchema> select_schema(const Type& type,
                                                  const std::vector<int64_t>& columns) {
  std::vector<OwnedSchema> children;
  children.reserve(columns.size());
  for (const int64_t i : columns) {
    children.push_back(copy_schema(*type.children[static_cast<std::size_t>(i)].schema));
  }
  OwnedSchema schema = make_nested_schema("+s", std::move(children), type.name());
  schema->flags = type.schema->flags;
  copy_metadata(*type.schema, schema.get());
  return share_schema(std::move(schema));
}

DeviceArray select_fields(const DeviceArray& array, const std::vector<int64_t>& columns,
                          const std::shared_ptr<const ParsedSchema>& schema) {
  // A bitmap starts at a byte, so the fields start at the row of its first bit.
  const int64_t lead = array.validity() == nullptr ? 0 : array.offset();
  const DeviceArray whole = array.widened(lead);
  ArrayParts parts;
  parts.length = array.length();
  parts.offset = lead;
  parts.null_count = array.known_null_count();
  parts.buffers.push_back(Buffer(array.storage(), array.validity(), 0));
  for (const int64_t i : columns) parts.children.push_back(share_array(whole.child(i)));
  return array.derive(schema, make_array(std::move(parts)));
}

ARROWDL_END_NAMESPACE
