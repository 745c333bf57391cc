// Plain values of rows, and schemas in short, for arrays of any type.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"

namespace arrowdl::testing {

/// One row: null, a number, bytes, or the rows below it. A union's row is its child's index and
/// one item.
struct Value {
  bool is_null = false;
  int64_t number = 0;
  std::string text;
  std::vector<Value> items;

  friend bool operator==(const Value& a, const Value& b) {
    return a.is_null == b.is_null && a.number == b.number && a.text == b.text && a.items == b.items;
  }
};

using Values = std::vector<Value>;

inline Value null() {
  Value value;
  value.is_null = true;
  return value;
}

inline Value number(int64_t n) {
  Value value;
  value.number = n;
  return value;
}

inline Value text(std::string bytes) {
  Value value;
  value.text = std::move(bytes);
  return value;
}

inline Value items(Values rows) {
  Value value;
  value.items = std::move(rows);
  return value;
}

inline Values numbers(std::initializer_list<int64_t> list) {
  Values values;
  for (const int64_t n : list) values.push_back(number(n));
  return values;
}

inline std::ostream& operator<<(std::ostream& out, const Value& value) {
  if (value.is_null) return out << "null";
  if (!value.text.empty()) return out << '"' << value.text << '"';
  out << value.number;
  if (value.items.empty()) return out;
  out << '[';
  for (const Value& item : value.items) out << item << ' ';
  return out << ']';
}

// ---------------------------------------------------------------- schemas

/// A nullable field.
template <typename... Children>
OwnedSchema field(const char* format, Children... children) {
  std::vector<OwnedSchema> list;
  (list.push_back(std::move(children)), ...);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = rename_schema(std::move(list[i]), std::string(1, static_cast<char>('a' + i)).c_str());
  }
  return make_nested_schema(format, std::move(list));
}

/// The same, never null: what Arrow asks of a map's entries and keys.
inline OwnedSchema required(OwnedSchema schema) {
  schema->flags &= ~ARROW_FLAG_NULLABLE;
  return schema;
}

inline OwnedSchema map(OwnedSchema key, OwnedSchema value) {
  return field("+m", required(field("+s", required(std::move(key)), std::move(value))));
}

inline OwnedSchema dictionary(const char* index, OwnedSchema values) {
  OwnedSchema schema = field(index);
  ArrowSchemaAllocateDictionary(schema.get());
  values.move(schema->dictionary);
  return schema;
}

inline OwnedSchema copy(const OwnedSchema& schema) {
  OwnedSchema copied;
  ArrowSchemaDeepCopy(schema.get(), copied.get());
  return copied;
}

}  // namespace arrowdl::testing
