// Makes arrays of any type from plain values, and reads them back. Uses all that Arrow allows:
// offsets at every level, garbage around rows and under nulls, missing bitmaps, unknown null
// counts, views in any order. Buffers have exactly the size that they need.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "arrowdl/device_array.hpp"
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

// ---------------------------------------------------------------- building

/// `bytes` in memory of exactly that size, which AddressSanitizer guards.
inline Buffer exact(const std::string& bytes) {
  std::shared_ptr<char[]> memory(new char[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), memory.get());
  const char* data = memory.get();
  return Buffer(std::move(memory), data, static_cast<int64_t>(bytes.size()));
}

template <typename T>
Buffer exact(const std::vector<T>& elements) {
  return exact(
      std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)));
}

inline Buffer exact_bits(const std::vector<bool>& bits, bool rubbish = false) {
  std::string bytes((bits.size() + 7) / 8, rubbish ? '\xFF' : '\0');
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto mask = static_cast<char>(1 << (i % 8));
    bytes[i / 8] = static_cast<char>(bits[i] ? bytes[i / 8] | mask : bytes[i / 8] & ~mask);
  }
  return exact(bytes);
}

/// Builds arrays, with garbage in memory that must not be read. `seed` determines everything
/// random.
class Builder {
 public:
  explicit Builder(unsigned seed) : random_(seed) {}

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool chance(int64_t in) { return pick(1, in) == 1; }

  /// Any row of `type`; of nullable ones now and then a null.
  Value make_value(const Type& type, bool may_be_null = true) {
    if (type.layout == Layout::kNull) return null();
    const bool can_be_null =
        type.has_validity() && type.dictionary == nullptr && type.is_nullable();
    if (can_be_null && may_be_null && chance(5)) return null();
    if (type.dictionary != nullptr) return make_value(*type.dictionary);
    switch (type.layout) {
      case Layout::kBoolean:
        return number(pick(0, 1));
      case Layout::kFixedWidth:
        return number(pick(-100, 100));
      case Layout::kBinary:
      case Layout::kLargeBinary:
      case Layout::kBinaryView:
        return text(std::string(static_cast<std::size_t>(chance(2) ? pick(0, 4) : pick(5, 30)),
                                static_cast<char>('a' + pick(0, 5))));
      case Layout::kFixedSizeList:
        return items(make_values(type.children[0], type.list_size));
      case Layout::kStruct: {
        Value row;
        for (const Type& child : type.children) row.items.push_back(make_value(child));
        return row;
      }
      case Layout::kSparseUnion:
      case Layout::kDenseUnion: {
        Value row = number(pick(0, static_cast<int64_t>(type.children.size()) - 1));
        row.items.push_back(make_value(type.children[static_cast<std::size_t>(row.number)]));
        return row;
      }
      case Layout::kRunEndEncoded:
        return make_value(type.children[1]);
      default:
        return items(make_values(type.children[0], pick(0, 4)));
    }
  }

  Values make_values(const Type& type, int64_t count) {
    Values values;
    for (int64_t i = 0; i < count; ++i) {
      const bool repeats = i > 0 && type.layout == Layout::kRunEndEncoded && chance(2);
      values.push_back(repeats ? values.back() : make_value(type));
    }
    return values;
  }

  /// The rows, anywhere in an array that may be longer.
  DeviceArray import(const OwnedSchema& schema, const Values& rows) {
    const Type type = parse_schema(*schema.get());
    const int64_t before = chance(2) ? pick(0, 10) : 0;
    Values padded = make_values(type, before);
    padded.insert(padded.end(), rows.begin(), rows.end());
    for (Value& value : make_values(type, pick(0, 2))) padded.push_back(std::move(value));
    return DeviceArray::import(copy(schema), build(type, padded))
        .slice(before, static_cast<int64_t>(rows.size()));
  }

  /// An array of just `rows`, its own offset aside.
  OwnedArray build(const Type& type, const Values& rows) {
    if (rows.empty() && chance(2)) return build_nothing(type);
    const int64_t offset = chance(2) ? pick(1, 9) : 0;
    Values all = make_values(type, offset);
    all.insert(all.end(), rows.begin(), rows.end());
    ArrayParts parts;
    parts.length = static_cast<int64_t>(rows.size());
    parts.offset = offset;
    const std::vector<bool> validity = make_validity(type, all);
    if (type.has_validity()) add_validity(validity, &parts);
    if (type.dictionary != nullptr) {
      add_dictionary(type, all, validity, &parts);
    } else {
      add_contents(type, all, &parts);
    }
    return make_array(std::move(parts));
  }

 private:
  OwnedArray build_nothing(const Type& type) {
    ArrayParts parts;
    const int64_t count = type.buffer_count() < 0 ? 3 : type.buffer_count();
    parts.buffers.resize(static_cast<std::size_t>(count));
    for (const Type& child : type.children) parts.children.push_back(build_nothing(child));
    if (type.dictionary != nullptr) parts.dictionary = build_nothing(*type.dictionary);
    return make_array(std::move(parts));
  }

  /// Bits of `all`; a null of a dictionary array is in its index or its value.
  std::vector<bool> make_validity(const Type& type, const Values& all) {
    std::vector<bool> bits;
    for (const Value& value : all) {
      bits.push_back(!value.is_null || (type.dictionary != nullptr && chance(2)));
    }
    return bits;
  }

  void add_validity(const std::vector<bool>& bits, ArrayParts* parts) {
    const auto count = [](auto from, auto to) { return std::count(from, to, false); };
    const bool drop = count(bits.begin(), bits.end()) == 0 && chance(2);
    parts->null_count = count(bits.begin() + parts->offset, bits.end());
    if (chance(2)) parts->null_count = -1;
    parts->buffers.push_back(drop ? Buffer() : exact_bits(bits, true));
  }

  void add_contents(const Type& type, const Values& all, ArrayParts* parts) {
    switch (type.layout) {
      case Layout::kNull:
        parts->null_count = parts->length;
        return;
      case Layout::kBoolean: {
        std::vector<bool> bits;
        for (const Value& value : all) bits.push_back(value.number != 0);
        parts->buffers.push_back(exact_bits(bits, true));
        return;
      }
      case Layout::kFixedWidth:
        return add_numbers(type, all, parts);
      case Layout::kBinary:
        return add_binary<int32_t>(all, parts);
      case Layout::kLargeBinary:
        return add_binary<int64_t>(all, parts);
      case Layout::kBinaryView:
        return add_binary_views(all, parts);
      case Layout::kList:
        return add_lists<int32_t>(type, all, parts);
      case Layout::kLargeList:
        return add_lists<int64_t>(type, all, parts);
      case Layout::kListView:
        return add_list_views<int32_t>(type, all, parts);
      case Layout::kLargeListView:
        return add_list_views<int64_t>(type, all, parts);
      case Layout::kFixedSizeList: {
        Values values;
        for (const Value& value : all) {
          append(&values,
                 value.is_null ? make_values(type.children[0], type.list_size) : value.items);
        }
        parts->children.push_back(build(type.children[0], values));
        return;
      }
      case Layout::kStruct:
        for (std::size_t i = 0; i < type.children.size(); ++i) {
          Values column;
          for (const Value& value : all) {
            column.push_back(value.is_null ? make_value(type.children[i]) : value.items[i]);
          }
          parts->children.push_back(build(type.children[i], column));
        }
        return;
      case Layout::kSparseUnion:
      case Layout::kDenseUnion:
        return add_union(type, all, parts);
      case Layout::kRunEndEncoded:
        return add_runs(type, all, parts);
    }
  }

  static void append(Values* values, const Values& more) {
    values->insert(values->end(), more.begin(), more.end());
  }

  void add_numbers(const Type& type, const Values& all, ArrayParts* parts) {
    const auto width = static_cast<std::size_t>(type.byte_width);
    std::string bytes;
    for (const Value& value : all) {
      const int64_t n = value.is_null ? pick(-100, 100) : value.number;
      std::string element(std::max(width, sizeof(n)), n < 0 ? '\xFF' : '\0');
      std::memcpy(element.data(), &n, sizeof(n));
      bytes += element.substr(0, width);
    }
    parts->buffers.push_back(exact(bytes));
  }

  void add_dictionary(const Type& type, const Values& all, const std::vector<bool>& validity,
                      ArrayParts* parts) {
    Values dictionary = make_values(*type.dictionary, pick(0, 3));
    Values indices;
    for (const Value& value : all) {
      if (!validity[indices.size()]) {
        indices.push_back(number(99));
        continue;
      }
      auto at = std::find(dictionary.begin(), dictionary.end(), value);
      if (at == dictionary.end() || chance(20)) at = dictionary.insert(dictionary.end(), value);
      indices.push_back(number(at - dictionary.begin()));
    }
    add_numbers(type, indices, parts);
    parts->dictionary = build(*type.dictionary, dictionary);
  }

  template <typename Offset>
  void add_binary(const Values& all, ArrayParts* parts) {
    std::string bytes(static_cast<std::size_t>(pick(0, 3)), '?');
    std::vector<Offset> offsets{static_cast<Offset>(bytes.size())};
    for (const Value& value : all) {
      bytes += value.is_null && chance(2) ? "rubbish" : value.text;
      offsets.push_back(static_cast<Offset>(bytes.size()));
    }
    parts->buffers.push_back(exact(offsets));
    parts->buffers.push_back(exact(bytes));
  }

  void add_binary_views(const Values& all, ArrayParts* parts) {
    std::vector<std::string> data(static_cast<std::size_t>(pick(1, 3)), "...");
    std::vector<ArrowBinaryViewRef> views;
    for (const Value& value : all) {
      ArrowBinaryViewRef view{};
      view.size = static_cast<int32_t>(value.text.size());
      if (value.is_null) {
        std::memset(&view, 0x7F, sizeof(view));
      } else if (view.size <= NANOARROW_BINARY_VIEW_INLINE_SIZE) {
        std::memcpy(view.prefix, value.text.data(), value.text.size());
      } else {
        std::memcpy(view.prefix, value.text.data(), sizeof(view.prefix));
        view.buffer_index = static_cast<int32_t>(pick(0, static_cast<int64_t>(data.size()) - 1));
        std::string& bytes = data[static_cast<std::size_t>(view.buffer_index)];
        view.offset = static_cast<int32_t>(bytes.size());
        bytes += value.text;
      }
      views.push_back(view);
    }
    parts->buffers.push_back(exact(views));
    std::vector<int64_t> sizes;
    for (const std::string& bytes : data) {
      sizes.push_back(static_cast<int64_t>(bytes.size()));
      parts->buffers.push_back(exact(bytes));
    }
    parts->buffers.push_back(exact(sizes));
  }

  template <typename Offset>
  void add_lists(const Type& type, const Values& all, ArrayParts* parts) {
    Values values = make_values(type.children[0], pick(0, 3));
    std::vector<Offset> offsets{static_cast<Offset>(values.size())};
    for (const Value& value : all) {
      append(&values, value.is_null ? make_values(type.children[0], pick(0, 2)) : value.items);
      offsets.push_back(static_cast<Offset>(values.size()));
    }
    append(&values, make_values(type.children[0], pick(0, 3)));
    parts->buffers.push_back(exact(offsets));
    parts->children.push_back(build(type.children[0], values));
  }

  template <typename Offset>
  void add_list_views(const Type& type, const Values& all, ArrayParts* parts) {
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (chance(2)) std::shuffle(order.begin(), order.end(), random_);
    const bool has_gaps = chance(2);
    Values values;
    std::vector<Offset> offsets(all.size());
    std::vector<Offset> sizes(all.size());
    for (const std::size_t i : order) {
      if (all[i].is_null) {
        offsets[i] = -7;
        sizes[i] = 1000;
        continue;
      }
      if (has_gaps) append(&values, make_values(type.children[0], pick(0, 2)));
      const auto at =
          std::search(values.begin(), values.end(), all[i].items.begin(), all[i].items.end());
      offsets[i] = static_cast<Offset>(at - values.begin());
      sizes[i] = static_cast<Offset>(all[i].items.size());
      if (at == values.end()) append(&values, all[i].items);
    }
    parts->buffers.push_back(exact(offsets));
    parts->buffers.push_back(exact(sizes));
    parts->children.push_back(build(type.children[0], values));
  }

  void add_union(const Type& type, const Values& all, ArrayParts* parts) {
    const bool is_dense = type.layout == Layout::kDenseUnion;
    std::vector<Values> columns(type.children.size());
    std::vector<int8_t> ids;
    std::vector<int32_t> offsets;
    for (const Value& value : all) {
      const auto child = static_cast<std::size_t>(value.number);
      ids.push_back(type.type_ids[child]);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i == child) {
          offsets.push_back(static_cast<int32_t>(columns[i].size()));
          columns[i].push_back(value.items[0]);
        } else if (!is_dense || chance(4)) {
          columns[i].push_back(make_value(type.children[i]));
        }
      }
    }
    parts->buffers.push_back(exact(ids));
    if (is_dense) parts->buffers.push_back(exact(offsets));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      parts->children.push_back(build(type.children[i], columns[i]));
    }
  }

  void add_runs(const Type& type, const Values& all, ArrayParts* parts) {
    Values ends;
    Values values;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!values.empty() && values.back() == all[i] && !chance(5)) {
        ends.back() = number(static_cast<int64_t>(i) + 1);
      } else {
        ends.push_back(number(static_cast<int64_t>(i) + 1));
        values.push_back(all[i]);
      }
    }
    parts->children.push_back(build(type.children[0], ends));
    parts->children.push_back(build(type.children[1], values));
  }

  std::mt19937 random_;
};

// ---------------------------------------------------------------- reading

template <typename T>
T element(const DeviceArray& array, int64_t buffer, int64_t i) {
  T value;
  std::memcpy(&value, array.buffer_as<uint8_t>(buffer) + (array.offset() + i) * int64_t{sizeof(T)},
              sizeof(T));
  return value;
}

inline int64_t read_number(const DeviceArray& array, int64_t i) {
  const int64_t width = array.type().byte_width;
  const auto* bytes = array.buffer_as<uint8_t>(1) + (array.offset() + i) * width;
  const bool is_negative = bytes[width - 1] >= 0x80 && array.type().schema->format[0] != 'C';
  int64_t n = is_negative ? -1 : 0;
  std::memcpy(&n, bytes, static_cast<std::size_t>(std::min<int64_t>(width, 8)));
  return n;
}

inline Value read_row(const DeviceArray& array, int64_t i);

inline Values read_rows(const DeviceArray& array, int64_t start, int64_t count) {
  Values values;
  for (int64_t i = 0; i < count; ++i) values.push_back(read_row(array, start + i));
  return values;
}

inline Values read_rows(const DeviceArray& array) { return read_rows(array, 0, array.length()); }

template <typename Offset>
Value read_list_row(const DeviceArray& array, int64_t i, bool is_view) {
  const int64_t start = element<Offset>(array, 1, i);
  const int64_t size =
      is_view ? int64_t{element<Offset>(array, 2, i)} : element<Offset>(array, 1, i + 1) - start;
  return items(read_rows(array.child(0), start, size));
}

template <typename Offset>
Value read_binary_row(const DeviceArray& array, int64_t i) {
  const Offset start = element<Offset>(array, 1, i);
  const Offset end = element<Offset>(array, 1, i + 1);
  return start == end ? text("")
                      : text(std::string(array.buffer_as<char>(2) + start,
                                         static_cast<std::size_t>(end - start)));
}

inline Value read_binary_view_row(const DeviceArray& array, int64_t i) {
  const auto view = element<ArrowBinaryViewRef>(array, 1, i);
  const char* data = view.size <= 12 ? array.buffer_as<char>(1) + (array.offset() + i) * 16 + 4
                                     : array.buffer_as<char>(2 + view.buffer_index) + view.offset;
  return text(std::string(data, static_cast<std::size_t>(view.size)));
}

inline Value read_union_row(const DeviceArray& array, int64_t i) {
  const std::vector<int8_t>& ids = array.type().type_ids;
  const auto at = std::find(ids.begin(), ids.end(), element<int8_t>(array, 0, i));
  const bool is_dense = array.type().layout == Layout::kDenseUnion;
  Value value = number(at - ids.begin());
  value.items.push_back(
      read_row(array.child(value.number), is_dense ? element<int32_t>(array, 1, i) : i));
  return value;
}

inline Value read_run(const DeviceArray& array, int64_t i) {
  int64_t run = 0;
  const DeviceArray ends = array.child(0);
  while (read_number(ends, run) <= array.offset() + i) ++run;
  return read_row(array.child(1), run);
}

inline Value read_row(const DeviceArray& array, int64_t i) {
  const Type& type = array.type();
  const uint8_t* validity = array.validity();
  const int64_t bit = array.offset() + i;
  if (type.layout == Layout::kNull) return null();
  if (validity != nullptr && (validity[bit / 8] >> (bit % 8) & 1) == 0) return null();
  if (type.dictionary != nullptr) return read_row(array.dictionary(), read_number(array, i));
  switch (type.layout) {
    case Layout::kBoolean:
      return number(array.buffer_as<uint8_t>(1)[bit / 8] >> (bit % 8) & 1);
    case Layout::kFixedWidth:
      return number(read_number(array, i));
    case Layout::kBinary:
      return read_binary_row<int32_t>(array, i);
    case Layout::kLargeBinary:
      return read_binary_row<int64_t>(array, i);
    case Layout::kBinaryView:
      return read_binary_view_row(array, i);
    case Layout::kList:
      return read_list_row<int32_t>(array, i, false);
    case Layout::kLargeList:
      return read_list_row<int64_t>(array, i, false);
    case Layout::kListView:
      return read_list_row<int32_t>(array, i, true);
    case Layout::kLargeListView:
      return read_list_row<int64_t>(array, i, true);
    case Layout::kFixedSizeList:
      return items(read_rows(array.child(0), i * type.list_size, type.list_size));
    case Layout::kStruct: {
      Value row;
      for (std::size_t c = 0; c < type.children.size(); ++c) {
        row.items.push_back(read_row(array.child(static_cast<int64_t>(c)), i));
      }
      return row;
    }
    case Layout::kSparseUnion:
    case Layout::kDenseUnion:
      return read_union_row(array, i);
    default:
      return read_run(array, i);
  }
}

// ---------------------------------------------------------------- the types to try

/// A name for the test's output, and the type.
struct NamedSchema {
  std::string name;
  OwnedSchema (*make)();
};

inline std::ostream& operator<<(std::ostream& out, const NamedSchema& type) {
  return out << type.name;
}

inline std::vector<NamedSchema> every_type() {
  return {
      {"null", [] { return field("n"); }},
      {"bool", [] { return field("b"); }},
      {"int8", [] { return field("c"); }},
      {"int16", [] { return field("s"); }},
      {"float32", [] { return field("f"); }},
      {"timestamp", [] { return field("tsu:UTC"); }},
      {"month_day_nano", [] { return field("tin"); }},
      {"decimal128", [] { return field("d:20,3"); }},
      {"decimal256", [] { return field("d:50,3,256"); }},
      {"fixed_size_binary", [] { return field("w:3"); }},
      {"string", [] { return field("u"); }},
      {"large_binary", [] { return field("Z"); }},
      {"string_view", [] { return field("vu"); }},
      {"binary_view", [] { return field("vz"); }},
      {"list", [] { return field("+l", field("i")); }},
      {"list_of_list", [] { return field("+l", field("+l", field("u"))); }},
      {"large_list", [] { return field("+L", field("b")); }},
      {"map", [] { return map(field("u"), field("i")); }},
      {"list_view", [] { return field("+vl", field("i")); }},
      {"large_list_view", [] { return field("+vL", field("vu")); }},
      {"fixed_size_list", [] { return field("+w:3", field("f")); }},
      {"fixed_size_list_nested", [] { return field("+w:2", field("+w:2", field("b"))); }},
      {"fixed_size_list_empty", [] { return field("+w:0", field("i")); }},
      {"struct", [] { return field("+s", field("i"), field("u"), field("b")); }},
      {"struct_empty", [] { return field("+s"); }},
      {"struct_nested", [] { return field("+s", field("+s", field("+l", field("i")))); }},
      {"sparse_union", [] { return field("+us:3,0", field("i"), field("u")); }},
      {"dense_union", [] { return field("+ud:5,7,1", field("i"), field("u"), field("b")); }},
      {"dense_union_of_lists",
       [] { return field("+ud:0,1", field("+l", field("i")), field("n")); }},
      {"dictionary", [] { return dictionary("i", field("u")); }},
      {"dictionary_uint8", [] { return dictionary("C", field("l")); }},
      {"dictionary_bool", [] { return dictionary("c", field("b")); }},
      {"dictionary_view", [] { return dictionary("s", field("vu")); }},
      {"dictionary_of_lists", [] { return dictionary("i", field("+l", field("i"))); }},
      {"dictionary_of_structs",
       [] { return dictionary("l", field("+s", field("u"), dictionary("c", field("w:2")))); }},
      {"dictionary_of_unions",
       [] { return dictionary("i", field("+ud:0,1", field("i"), field("+vl", field("u")))); }},
      {"list_of_dictionary", [] { return field("+l", dictionary("i", field("u"))); }},
      {"run_end_16", [] { return field("+r", field("s"), field("i")); }},
      {"run_end_32", [] { return field("+r", field("i"), field("u")); }},
      {"run_end_64", [] { return field("+r", field("l"), field("+l", field("b"))); }},
      {"run_end_bool", [] { return field("+r", field("i"), field("b")); }},
      {"run_end_decimal", [] { return field("+r", field("i"), field("d:20,3")); }},
      {"run_end_null", [] { return field("+r", field("i"), field("n")); }},
      {"run_end_union", [] { return field("+r", field("i"), field("+ud:0", field("i"))); }},
      {"run_end_dictionary", [] { return field("+r", field("i"), dictionary("c", field("u"))); }},
      {"list_of_run_end", [] { return field("+l", field("+r", field("i"), field("f"))); }},
      {"struct_of_all",
       [] {
         return field("+s", field("+vl", dictionary("c", field("u"))), field("+us:0", field("vz")),
                      field("+w:2", field("+r", field("s"), field("u"))));
       }},
  };
}

}  // namespace arrowdl::testing
