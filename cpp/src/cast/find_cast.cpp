// Finds the cast from one node of a type to another one.
#include "cast/find_cast.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "arrowdl/error.hpp"
#include "cast/cast_dtype.hpp"
#include "cast/common_shape.hpp"
#include "cast/make_nulls.hpp"
#include "cast/match_fields.hpp"
#include "schema/layout_families.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::string_view format_of(const Type& type) { return type.schema->format; }
bool has_flag(const Type& type, int64_t flag) { return (type.schema->flags & flag) != 0; }

FoundCast is_incompatible(std::string why_not = {}) {
  return {Cast::kIncompatible, std::move(why_not)};
}

// ---------------------------------------------------------------- extensions

/// Whether two types of one extension mean the same, apart from their storage.
bool is_same_extension(const Type& from, const Type& to) {
  if (find_metadata(*from.schema, kExtensionMetadataKey) ==
      find_metadata(*to.schema, kExtensionMetadataKey)) {
    return true;
  }
  if (from.extension == Extension::kDtype) return true;
  if (from.tensor == nullptr || to.tensor == nullptr) return false;
  const TensorMetadata& a = *from.tensor;
  const TensorMetadata& b = *to.tensor;
  return a.shape == b.shape && a.uniform_shape == b.uniform_shape &&
         effective_permutation(a) == effective_permutation(b);
}

/// The cast that the extensions of two types allow: kSame if their storage decides.
FoundCast compare_extensions(const Type& from, const Type& to) {
  const auto name = find_metadata(*from.schema, kExtensionNameKey);
  const auto requested = find_metadata(*to.schema, kExtensionNameKey);
  if (!requested) return {Cast::kSame};
  if (!name) {
    const bool promises = to.tensor != nullptr && !to.tensor->uniform_shape.empty();
    if (promises) return is_incompatible("the data does not say that its shapes are uniform");
    return {Cast::kSame};
  }
  if (*name != *requested) {
    const bool are_numbers =
        from.extension == Extension::kDtype && to.extension == Extension::kDtype;
    return is_incompatible(are_numbers ? "their storage differs in meaning" : "");
  }
  if (is_same_extension(from, to)) return {Cast::kSame};
  const bool is_shape = from.extension == Extension::kFixedShapeTensor;
  return is_incompatible(is_shape ? "the tensors differ in shape"
                                  : "the metadata of their extension differs");
}

// ---------------------------------------------------------------- numbers

bool is_plain_number(const Type& type) {
  return type.dtype != nullptr && type.layout == Layout::kFixedWidth && format_of(type)[0] != 't';
}

bool is_bool8(const Type& type) {
  return type.extension == Extension::kDtype && type.dtype->code == kDLBool;
}

// ---------------------------------------------------------------- dates, times, decimals

/// The kind and unit of a temporal format: "tsu" of "tsu:UTC".
std::string_view without_zone(std::string_view format) { return format.substr(0, 3); }

/// Dates and local times without a zone are read alike; a date64 of a time is not checked.
bool are_days(std::string_view from, std::string_view to) {
  const bool is_to_time = from[1] == 'd' && to[1] == 's' && to.size() <= 4;
  const bool is_to_date = from[1] == 's' && from.size() <= 4 && to == "tdD";
  return is_to_time || is_to_date;
}

FoundCast find_temporal_cast(std::string_view from, std::string_view to) {
  if (are_days(from, to)) return {Cast::kUnits};
  if (from[1] != to[1] || from[1] == 'i') return is_incompatible();
  // The zone of an instant only matters for display; a local time is not an instant.
  if (from[1] == 's' && (from.size() > 4) != (to.size() > 4)) {
    return is_incompatible("one is a local time and the other one an instant");
  }
  return {without_zone(from) == without_zone(to) ? Cast::kSame : Cast::kUnits};
}

/// Whether a date, time or duration, and integers that are its physical values, have the same
/// buffers. Integers are not checked for being whole days, or times of a day.
bool is_physical(const Type& from, const Type& to) {
  const bool is_to_number = format_of(from)[0] == 't';
  const Type& number = is_to_number ? to : from;
  const std::string_view temporal = format_of(is_to_number ? from : to);
  if (temporal[0] != 't' || temporal[1] == 'i' || number.dtype == nullptr) return false;
  const bool is_checked = temporal == "tdm" || temporal[1] == 't';
  const std::string_view format = format_of(number);
  return (is_to_number || !is_checked) && (format == "i" || format == "l") &&
         from.byte_width == to.byte_width;
}

/// The parts of "d:precision,scale,bits".
struct Decimal {
  int precision = 0;
  int scale = 0;
  int bits = 128;
};

Decimal read_decimal(const Type& type) {
  Decimal decimal;
  const std::string_view format(type.schema->format);
  const char* const end = format.data() + format.size();
  const char* at = format.data() + 1;  // ":" and "," come before numbers
  for (int* const number : {&decimal.precision, &decimal.scale, &decimal.bits}) {
    if (at == end) break;
    at = std::from_chars(at + 1, end, *number).ptr;
  }
  return decimal;
}

FoundCast find_decimal_cast(const Type& from, const Type& to) {
  const Decimal own = read_decimal(from);
  const Decimal wanted = read_decimal(to);
  const bool holds = own.scale == wanted.scale && own.bits == wanted.bits;
  if (holds && wanted.precision >= own.precision) return {Cast::kSame};
  return is_incompatible("fewer digits, or another scale or width");
}

// ---------------------------------------------------------------- one node

FoundCast find_binary_cast(const Type& from, const Type& to) {
  if (to.is_fixed_size_binary) return is_incompatible();
  if (to.is_utf8 && !from.is_utf8) return is_incompatible("bytes may not be UTF-8");
  return {from.layout == to.layout ? Cast::kSame : Cast::kBinary};
}

bool is_any_bool(const Type& type) { return type.layout == Layout::kBoolean || is_bool8(type); }

FoundCast find_number_cast(const Type& from, const Type& to) {
  const bool is_castable = is_plain_number(to) && can_cast_to(*to.dtype);
  if (is_castable && is_any_bool(from)) return {Cast::kBools};
  if (is_castable && is_plain_number(from) && can_cast_to(*from.dtype)) return {Cast::kNumbers};
  return is_incompatible();
}

FoundCast find_leaf_cast(const Type& from, const Type& to) {
  if (format_of(from) == format_of(to)) return {Cast::kSame};
  if (is_binary(from) != is_binary(to)) return is_incompatible();
  if (is_binary(from)) return find_binary_cast(from, to);
  if (is_bool8(from) && to.layout == Layout::kBoolean) return {Cast::kPackBits};
  if (from.layout == Layout::kBoolean && is_bool8(to)) return {Cast::kUnpackBits};
  const char own = format_of(from)[0];
  const char wanted = format_of(to)[0];
  if (own == 't' && wanted == 't') return find_temporal_cast(format_of(from), format_of(to));
  if (own == 'd' && wanted == 'd') return find_decimal_cast(from, to);
  if (is_physical(from, to)) return {Cast::kSame};
  return find_number_cast(from, to);
}

FoundCast find_list_cast(const Type& from, const Type& to) {
  if (find_common_shape(from, to) != nullptr) return {Cast::kReshape};
  const bool are_fixed = from.layout == Layout::kFixedSizeList && to.layout == from.layout;
  if (are_fixed && from.list_size != to.list_size) {
    return is_incompatible("their lists have different lengths");
  }
  const bool is_map_of_other = to.is_map && !from.is_map;
  const bool sorts =
      has_flag(to, ARROW_FLAG_MAP_KEYS_SORTED) && !has_flag(from, ARROW_FLAG_MAP_KEYS_SORTED);
  if (is_map_of_other) return is_incompatible("lists may not be maps");
  if (sorts) return is_incompatible("its keys may not be sorted");
  return {from.layout == to.layout ? Cast::kSame : Cast::kList};
}

FoundCast find_union_cast(const Type& from, const Type& to) {
  if (format_of(from) == format_of(to)) return {Cast::kSame};
  return is_incompatible(from.type_ids == to.type_ids ? "" : "their type ids differ");
}

FoundCast find_struct_cast(const Type& from, const Type& to) {
  if (from.children.size() != to.children.size()) {
    return is_incompatible(
        concat(from.children.size(), " fields, and ", to.children.size(), " are requested"));
  }
  if (match_fields(from, to).size() == to.children.size()) return {Cast::kStruct};
  return is_incompatible("some names of the fields are the same, and others are not");
}

FoundCast find_nested_cast(const Type& from, const Type& to) {
  if (is_list(from) && is_list(to)) return find_list_cast(from, to);
  if (is_union(from) && is_union(to)) return find_union_cast(from, to);
  if (from.layout == Layout::kStruct && to.layout == Layout::kStruct) {
    return find_struct_cast(from, to);
  }
  return is_incompatible();
}

FoundCast find_dictionary_cast(const Type& from, const Type& to) {
  if (has_flag(to, ARROW_FLAG_DICTIONARY_ORDERED) &&
      !has_flag(from, ARROW_FLAG_DICTIONARY_ORDERED)) {
    return is_incompatible("its values are not ordered");
  }
  if (to.dictionary == nullptr) return {Cast::kDecode};
  if (from.dictionary == nullptr) return {Cast::kEncode};
  if (format_of(from) == format_of(to)) return {Cast::kSame};
  return {Cast::kIndices};
}

}  // namespace

FoundCast find_cast(const Type& from, const Type& to) {
  FoundCast meaning = compare_extensions(from, to);
  if (meaning.cast != Cast::kSame) return meaning;
  const bool has_runs = from.layout == Layout::kRunEndEncoded;
  const bool wants_runs = to.layout == Layout::kRunEndEncoded;
  if (has_runs && !wants_runs) return {Cast::kDecodeRuns};
  if (from.layout == Layout::kNull && from.dictionary == nullptr) {
    if (to.layout == Layout::kNull && to.dictionary == nullptr) return {Cast::kSame};
    return can_be_null(to) ? FoundCast{Cast::kNulls} : is_incompatible();
  }
  if (from.dictionary != nullptr || to.dictionary != nullptr) return find_dictionary_cast(from, to);
  if (has_runs) {
    const bool is_same = format_of(from.children[0]) == format_of(to.children[0]);
    return {is_same ? Cast::kSame : Cast::kRuns};
  }
  if (to.layout == Layout::kNull) return is_incompatible();
  if (wants_runs) return is_incompatible("values are not run-end encoded");
  if (is_nested(from) || is_nested(to)) return find_nested_cast(from, to);
  return find_leaf_cast(from, to);
}

ARROWDL_END_NAMESPACE
