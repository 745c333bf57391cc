// Builds arrays of any type from plain values. Uses all that Arrow allows: offsets at every level,
// garbage around rows and under nulls, missing bitmaps, unknown null counts, views in any order.
// Buffers have exactly the size that they need.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {

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

}  // namespace arrowdl::testing
