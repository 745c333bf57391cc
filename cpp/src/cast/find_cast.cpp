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
    return {promises ? Cast::kNone : Cast::kSame};
  }
  if (*name != *requested) {
    const bool are_numbers =
        from.extension == Extension::kDtype && to.extension == Extension::kDtype;
    return are_numbers ? FoundCast{Cast::kNone} : is_incompatible();
  }
  if (is_same_extension(from, to)) return {Cast::kSame};
  const bool is_shape = from.extension == Extension::kFixedShapeTensor;
  return is_shape ? is_incompatible("the tensors differ in shape") : FoundCast{Cast::kNone};
}

// ---------------------------------------------------------------- numbers

/// The bits of the largest integers that a type holds exactly, without the sign.
int count_exact_bits(const Dtype& dtype) {
  switch (dtype.code) {
    case kDLInt:
      return dtype.bits - 1;
    case kDLUInt:
      return dtype.bits;
    case kDLBfloat:
      return 8;
    default:
      return dtype.bits == 16 ? 11 : dtype.bits == 32 ? 24 : 53;
  }
}

/// Whether `to` holds each number of `from`, and cast_numbers converts them.
bool is_wider(const Dtype& from, const Dtype& to) {
  const bool is_integer = from.code == kDLInt || from.code == kDLUInt;
  const bool is_real = from.code == kDLFloat || from.code == kDLBfloat;
  if (!is_integer && !is_real) return false;
  // cast_numbers has no such elements.
  if (std::max(from.bits, to.bits) > 64 || std::min(from.bits, to.bits) < 8) return false;
  const bool holds = count_exact_bits(to) >= count_exact_bits(from);
  if (to.code == kDLFloat) return holds && to.bits >= 32;
  if (!is_integer || to.bits <= from.bits) return false;
  return to.code == kDLInt || (to.code == kDLUInt && from.code == kDLUInt);
}

bool is_plain_number(const Type& type) {
  return type.dtype != nullptr && type.layout == Layout::kFixedWidth && format_of(type)[0] != 't';
}

bool is_bool8(const Type& type) {
  return type.extension == Extension::kDtype && type.dtype->code == kDLBool;
}

// ---------------------------------------------------------------- dates, times, decimals

/// The kind and unit of a temporal format: "tsu" of "tsu:UTC".
std::string_view without_zone(std::string_view format) { return format.substr(0, 3); }

Cast find_temporal_cast(std::string_view from, std::string_view to) {
  if (from[1] != to[1] || from[1] == 'i') return Cast::kNone;
  if (from[1] == 's') {
    // The zone of an instant only matters for display; a local time is not an instant.
    const bool has_zone = from.size() > 4;
    if (has_zone != (to.size() > 4)) return Cast::kNone;
  }
  return without_zone(from) == without_zone(to) ? Cast::kSame : Cast::kUnits;
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

Cast find_decimal_cast(const Type& from, const Type& to) {
  const Decimal own = read_decimal(from);
  const Decimal wanted = read_decimal(to);
  const bool holds = own.scale == wanted.scale && own.bits == wanted.bits;
  return holds && wanted.precision >= own.precision ? Cast::kSame : Cast::kNone;
}

// ---------------------------------------------------------------- one node

Cast find_binary_cast(const Type& from, const Type& to) {
  if (to.is_fixed_size_binary) {
    return from.is_fixed_size_binary ? Cast::kIncompatible : Cast::kNone;
  }
  if (to.is_utf8 && !from.is_utf8) return Cast::kNone;
  return from.layout == to.layout ? Cast::kSame : Cast::kBinary;
}

Cast find_leaf_cast(const Type& from, const Type& to) {
  if (format_of(from) == format_of(to)) return Cast::kSame;
  if (is_binary(from) != is_binary(to)) return Cast::kIncompatible;
  if (is_binary(from)) return find_binary_cast(from, to);
  if (is_bool8(from) && to.layout == Layout::kBoolean) return Cast::kPackBits;
  if (from.layout == Layout::kBoolean && is_bool8(to)) return Cast::kUnpackBits;
  const char own = format_of(from)[0];
  const char wanted = format_of(to)[0];
  if (own == 't' && wanted == 't') return find_temporal_cast(format_of(from), format_of(to));
  if (own == 'd' && wanted == 'd') return find_decimal_cast(from, to);
  if (!is_plain_number(from) || !is_plain_number(to)) return Cast::kNone;
  return can_cast_to(*from.dtype) && can_cast_to(*to.dtype) ? Cast::kNumbers : Cast::kNone;
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
  if (is_map_of_other || sorts) return {Cast::kNone};
  return {from.layout == to.layout ? Cast::kSame : Cast::kList};
}

FoundCast find_union_cast(const Type& from, const Type& to) {
  if (format_of(from) == format_of(to)) return {Cast::kSame};
  const bool are_alike = from.type_ids == to.type_ids;
  return are_alike ? FoundCast{Cast::kNone} : is_incompatible("their type ids differ");
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
    return {Cast::kNone};
  }
  if (to.dictionary == nullptr) return {Cast::kDecode};
  if (from.dictionary == nullptr) return {Cast::kEncode};
  if (format_of(from) == format_of(to)) return {Cast::kSame};
  return {is_wider(*from.dtype, *to.dtype) ? Cast::kIndices : Cast::kNone};
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
    return {can_be_null(to) ? Cast::kNulls : Cast::kNone};
  }
  if (from.dictionary != nullptr || to.dictionary != nullptr) return find_dictionary_cast(from, to);
  if (has_runs) {
    const bool is_same = format_of(from.children[0]) == format_of(to.children[0]);
    return {is_same ? Cast::kSame : Cast::kRuns};
  }
  if (to.layout == Layout::kNull) return is_incompatible();
  if (wants_runs) {
    FoundCast values = find_cast(from, to.children[1]);
    if (values.cast != Cast::kIncompatible) values.cast = Cast::kNone;
    return values;
  }
  if (is_nested(from) || is_nested(to)) return find_nested_cast(from, to);
  return {find_leaf_cast(from, to)};
}

ARROWDL_END_NAMESPACE
