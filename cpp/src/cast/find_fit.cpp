// Finds whether, and how, arrays of one type can be cast to another.
#include "cast/find_fit.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>

#include "arrowdl/error.hpp"
#include "cast/cast_dtype.hpp"
#include "cast/nulls.hpp"
#include "schema/layout.hpp"
#include "schema/schema_path.hpp"

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

[[noreturn]] void raise_incompatible(const TypePath& path, const Type& to,
                                     const std::string& why_not) {
  raise_value_error(
      "the requested schema is incompatible with the data at ", to_string(path), ": ",
      to_string(*path.type), " is requested as ", to_string(to),
      why_not.empty() ? "" : concat(" (", why_not, ")"),
      "; a request chooses between forms of the same data: request one of these, or none and cast "
      "the result");
}

Fit find_fit_at(const TypePath& path, const Type& to);

/// Calls visit(child of `from`, child of `to`) for the pairs that a cast of the node leaves to
/// cast.
template <typename Visit>
void visit_pairs_to_cast(const Type& from, const Type& to, Cast cast, const Visit& visit) {
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
  if (cast == Cast::kSame) return Fit::kSame;
  if (cast != Cast::kStruct) return Fit::kConverted;
  return is_in_order(match_fields(from, to)) ? Fit::kSame : Fit::kShared;
}

Fit find_fit_at(const TypePath& path, const Type& to) {
  const Type& from = *path.type;
  const FoundCast found = find_cast(from, to);
  if (found.cast == Cast::kIncompatible) raise_incompatible(path, to, found.why_not);
  Fit children = Fit::kSame;
  visit_pairs_to_cast(from, to, found.cast, [&](const Type& child, const Type& wanted) {
    children =
        std::max(children, find_fit_at(&child == &from ? path : TypePath{&path, &child}, wanted));
  });
  // Unions are not rebuilt around other children, and nodes other than structs are copied for it.
  if (children > Fit::kSame && is_union(from)) {
    raise_incompatible(path, to, "members of unions are not converted");
  }
  if (children == Fit::kShared && found.cast != Cast::kStruct) children = Fit::kConverted;
  return std::max(children, fit_of(from, to, found.cast));
}

}  // namespace

std::vector<int64_t> effective_permutation(const TensorMetadata& tensor) {
  const std::vector<int64_t>& own = tensor.permutation;
  return std::is_sorted(own.begin(), own.end()) ? std::vector<int64_t>() : own;
}

const Type* find_innermost(const Type& lists, const std::vector<int64_t>& shape) {
  const Type* type = &lists;
  for (const int64_t extent : shape) {
    const bool is_plain = !find_metadata(*type->schema, kExtensionNameKey);
    const bool is_this_list = type->layout == Layout::kFixedSizeList && type->list_size == extent;
    if (!is_this_list || !is_plain) return nullptr;
    type = &type->children[0];
  }
  return type;
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

std::vector<std::size_t> match_fields(const Type& from, const Type& to) {
  const std::size_t count = to.children.size();
  std::vector<std::size_t> by_position(count);
  std::unordered_map<std::string_view, std::size_t> positions;
  for (std::size_t i = 0; i < count; ++i) {
    by_position[i] = i;
    positions.try_emplace(from.children[i].name(), i);
  }
  std::vector<std::size_t> by_name(count, count);
  bool are_elsewhere = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = to.children[i].name();
    if (name == from.children[i].name()) {
      by_name[i] = i;
    } else if (const auto position = positions.find(name); position != positions.end()) {
      by_name[i] = position->second;
      are_elsewhere = true;
    }
  }
  if (!are_elsewhere) return by_position;
  std::vector<std::size_t> sorted = by_name;
  std::sort(sorted.begin(), sorted.end());
  return sorted == by_position ? by_name : std::vector<std::size_t>();
}

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

Fit find_fit(const Type& from, const Type& to) { return find_fit_at(TypePath{nullptr, &from}, to); }

bool narrows_nullability(const Type& from, const Type& to) {
  if (from.is_nullable() && !to.is_nullable()) return true;
  bool narrows = false;
  visit_pairs_to_cast(from, to, find_cast(from, to).cast,
                      [&](const Type& child, const Type& wanted) {
                        narrows = narrows || narrows_nullability(child, wanted);
                      });
  return narrows;
}

ARROWDL_END_NAMESPACE
