// Finds the fields of a table that are columns.
#include "schema/find_columns.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "arrowdl/error.hpp"
#include "util/json.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// How pyarrow and pandas name the field of an index without a name, before its level.
constexpr std::string_view kIndexPrefix = "__index_level_";

bool may_be_index(const Type& field) {
  return std::string_view(field.name()).substr(0, kIndexPrefix.size()) == kIndexPrefix;
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

ARROWDL_END_NAMESPACE
