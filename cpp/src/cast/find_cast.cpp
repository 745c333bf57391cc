#include <algorithm>
#include <cstdio>
#include <string_view>
#include <unordered_map>

#include "cast/cast.hpp"

namespace arrowdl {
namespace {

constexpr const char* kExtensionName = "ARROW:extension:name";
constexpr const char* kExtensionMetadata = "ARROW:extension:metadata";

std::string_view format_of(const Type& type) { return type.schema->format; }
bool has_flag(const Type& type, int64_t flag) { return (type.schema->flags & flag) != 0; }

FoundCast is_incompatible(std::string why_not = {}) {
  return {Cast::kIncompatible, std::move(why_not)};
}

// ---------------------------------------------------------------- families of layouts

bool is_list(const Type& type) {
  switch (type.layout) {
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
    case Layout::kFixedSizeList:
      return true;
    default:
      return false;
  }
}

bool is_union(const Type& type) {
  return type.layout == Layout::kSparseUnion || type.layout == Layout::kDenseUnion;
}

bool is_nested(const Type& type) {
  return is_list(type) || is_union(type) || type.layout == Layout::kStruct;
}

/// Bytes, which no number is made of; those that an extension reads as a number are one.
bool is_binary(const Type& type) {
  return type.layout == Layout::kBinary || type.layout == Layout::kLargeBinary ||
         type.layout == Layout::kBinaryView || type.is_fixed_size_binary;
}

// ---------------------------------------------------------------- extensions

/// The permutation, none for one that leaves all where it is.
std::vector<int64_t> effective_permutation(const TensorMetadata& tensor) {
  const std::vector<int64_t>& own = tensor.permutation;
  return std::is_sorted(own.begin(), own.end()) ? std::vector<int64_t>() : own;
}

/// Whether two types of one extension mean the same, whatever their storage.
bool is_same_extension(const Type& from, const Type& to) {
  if (find_metadata(*from.schema, kExtensionMetadata) ==
      find_metadata(*to.schema, kExtensionMetadata)) {
    return true;
  }
  if (from.extension == Extension::kDtype) return true;
  if (from.tensor == nullptr || to.tensor == nullptr) return false;
  const TensorMetadata& a = *from.tensor;
  const TensorMetadata& b = *to.tensor;
  return a.shape == b.shape && a.uniform_shape == b.uniform_shape &&
         effective_permutation(a) == effective_permutation(b);
}

/// What the extensions of two types say: kSame where their storage decides.
FoundCast compare_extensions(const Type& from, const Type& to) {
  const auto name = find_metadata(*from.schema, kExtensionName);
  const auto requested = find_metadata(*to.schema, kExtensionName);
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

/// Bits that the integers of a type have, without the sign, or that it holds exactly.
int count_digits(const Dtype& dtype) {
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

/// Whether each number of `from` is one of `to`, whose conversion is cast_numbers'.
bool is_wider(const Dtype& from, const Dtype& to) {
  const bool is_integer = from.code == kDLInt || from.code == kDLUInt;
  const bool is_real = from.code == kDLFloat || from.code == kDLBfloat;
  if (!is_integer && !is_real) return false;
  const bool holds = count_digits(to) >= count_digits(from);
  if (to.code == kDLFloat) return holds && to.bits >= 32;
  if (!is_integer || to.bits <= from.bits) return false;
  return to.code == kDLInt || (to.code == kDLUInt && from.code == kDLUInt);
}

bool is_number(const Type& type) {
  return type.dtype != nullptr && type.layout == Layout::kFixedWidth && format_of(type)[0] != 't';
}

bool is_bool8(const Type& type) {
  return type.extension == Extension::kDtype && type.dtype->code == kDLBool;
}

// ---------------------------------------------------------------- dates, times, decimals

/// "tsu:UTC" without the zone, "tdD" as it is.
std::string_view without_zone(std::string_view format) { return format.substr(0, 3); }

Cast find_temporal_cast(std::string_view from, std::string_view to) {
  if (from[1] != to[1] || from[1] == 'i') return Cast::kNone;
  if (from[1] == 's') {
    // An instant reads otherwise in another zone and stays the same; a local time is no instant.
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
  std::sscanf(type.schema->format, "d:%d,%d,%d", &decimal.precision, &decimal.scale, &decimal.bits);
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
  if (!is_number(from) || !is_number(to)) return Cast::kNone;
  return is_wider(*from.dtype, *to.dtype) ? Cast::kNumbers : Cast::kNone;
}

/// What lies in lists within lists of the sizes `shape`, or nullptr for other types.
const Type* find_innermost(const Type& lists, const std::vector<int64_t>& shape) {
  const Type* type = &lists;
  for (const int64_t extent : shape) {
    const bool is_plain = !find_metadata(*type->schema, kExtensionName);
    const bool is_list = type->layout == Layout::kFixedSizeList && type->list_size == extent;
    if (!is_list || !is_plain) return nullptr;
    type = &type->children[0];
  }
  return type;
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
        concat(from.children.size(), " fields, and ", to.children.size(), " are asked for"));
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

/// Whether a row of `type` can be made that stands for nothing: an index needs a value, and run
/// ends need a run.
bool has_default(const Type& type) {
  if (type.dictionary != nullptr || type.layout == Layout::kRunEndEncoded) return false;
  const bool has_rows =
      type.layout == Layout::kStruct || type.layout == Layout::kFixedSizeList || is_union(type);
  return !has_rows || std::all_of(type.children.begin(), type.children.end(), has_default);
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

// ---------------------------------------------------------------- whole types

/// Where in the types a pair of them lies.
struct Path {
  const Path* parent;
  const Type* type;
};

std::string to_string(const Path& path) {
  const std::string own = *path.type->name() == '\0' ? "(unnamed)" : path.type->name();
  return path.parent == nullptr ? own : concat(to_string(*path.parent), " > ", own);
}

[[noreturn]] void raise_incompatible(const Path& path, const Type& to, const std::string& why_not) {
  raise_value_error(
      "the requested schema is incompatible with the data at ", to_string(path), ": ",
      to_string(*path.type), " is asked for as ", to_string(to),
      why_not.empty() ? "" : concat(" (", why_not, ")"),
      "; a request chooses between forms of the same data: ask for one, or for none and cast what "
      "you get");
}

Fit find_fit_at(const Path& path, const Type& to);

/// The pairs of types below a node.
template <typename Visit>
void visit_pairs(const Type& from, const Type& to, Cast cast, const Visit& visit) {
  if (cast == Cast::kDecode) return visit(*from.dictionary, to);
  if (cast == Cast::kEncode) return visit(from, *to.dictionary);
  if (cast == Cast::kDecodeRuns) return visit(from.children[1], to);
  if (cast == Cast::kNulls) return;
  if (cast == Cast::kReshape) {
    const std::vector<int64_t>& shape = *find_common_shape(from, to);
    const bool is_flat = from.extension == Extension::kFixedShapeTensor;
    return is_flat ? visit(from.children[0], *find_innermost(to, shape))
                   : visit(*find_innermost(from, shape), to.children[0]);
  }
  if (from.dictionary != nullptr && to.dictionary != nullptr) {
    visit(*from.dictionary, *to.dictionary);
  }
  if (from.children.size() != to.children.size()) return;
  const bool by_name = cast == Cast::kStruct;
  const std::vector<std::size_t> fields =
      by_name ? match_fields(from, to) : std::vector<std::size_t>();
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    visit(from.children[by_name ? fields[i] : i], to.children[i]);
  }
}

bool is_in_order(const std::vector<std::size_t>& fields) {
  return std::is_sorted(fields.begin(), fields.end());
}

Fit fit_of(const Type& from, const Type& to, Cast cast) {
  if (cast == Cast::kNone) return Fit::kNone;
  if (cast == Cast::kSame) return Fit::kSame;
  if (cast != Cast::kStruct) return Fit::kConverted;
  return is_in_order(match_fields(from, to)) ? Fit::kSame : Fit::kShared;
}

Fit find_fit_at(const Path& path, const Type& to) {
  const Type& from = *path.type;
  const FoundCast found = find_cast(from, to);
  if (found.cast == Cast::kIncompatible) raise_incompatible(path, to, found.why_not);
  Fit below = Fit::kSame;
  visit_pairs(from, to, found.cast, [&](const Type& child, const Type& wanted) {
    below = std::max(below, find_fit_at(&child == &from ? path : Path{&path, &child}, wanted));
  });
  if (below == Fit::kNone) return below;
  // Nodes but structs are made anew with what lies below them, and unions are not.
  if (below > Fit::kSame && is_union(from)) return Fit::kNone;
  if (below == Fit::kShared && found.cast != Cast::kStruct) below = Fit::kConverted;
  return std::max(below, fit_of(from, to, found.cast));
}

}  // namespace

std::vector<std::size_t> match_fields(const Type& from, const Type& to) {
  const std::size_t count = to.children.size();
  std::vector<std::size_t> by_position(count);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    by_position[i] = i;
    places.try_emplace(from.children[i].name(), i);
  }
  std::vector<std::size_t> by_name(count, count);
  bool are_elsewhere = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = to.children[i].name();
    if (name == from.children[i].name()) {
      by_name[i] = i;
    } else if (const auto place = places.find(name); place != places.end()) {
      by_name[i] = place->second;
      are_elsewhere = true;
    }
  }
  if (!are_elsewhere) return by_position;
  std::vector<std::size_t> sorted = by_name;
  std::sort(sorted.begin(), sorted.end());
  return sorted == by_position ? by_name : std::vector<std::size_t>();
}

const std::vector<int64_t>* find_common_shape(const Type& from, const Type& to) {
  const bool is_flat = from.extension == Extension::kFixedShapeTensor;
  const Type& tensor = is_flat ? from : to;
  if (tensor.extension != Extension::kFixedShapeTensor || tensor.tensor->shape.size() < 2) {
    return nullptr;
  }
  const std::vector<int64_t>& shape = tensor.tensor->shape;
  const Type* innermost = find_innermost(is_flat ? to : from, shape);
  return innermost != nullptr && effective_permutation(*tensor.tensor).empty() ? &shape : nullptr;
}

bool can_be_null(const Type& type) {
  if (!type.has_validity()) return type.layout == Layout::kNull;
  const bool has_rows = type.layout == Layout::kStruct || type.layout == Layout::kFixedSizeList;
  return !has_rows || std::all_of(type.children.begin(), type.children.end(), has_default);
}

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

Fit find_fit(const Type& from, const Type& to) { return find_fit_at(Path{nullptr, &from}, to); }

bool narrows_nullability(const Type& from, const Type& to) {
  if (from.is_nullable() && !to.is_nullable()) return true;
  bool narrows = false;
  visit_pairs(from, to, find_cast(from, to).cast, [&](const Type& child, const Type& wanted) {
    narrows = narrows || narrows_nullability(child, wanted);
  });
  return narrows;
}

}  // namespace arrowdl
