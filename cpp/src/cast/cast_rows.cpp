// Casts arrays to another type of the same data.

#include "array/null_rows.hpp"
#include "array/row_access.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/error.hpp"
#include "cast/cast_dtype.hpp"
#include "cast/casts.hpp"
#include "cast/find_fit.hpp"
#include "cast/misfit.hpp"
#include "cast/nulls.hpp"
#include "compute/pack_bits.hpp"
#include "schema/layout.hpp"
#include "schema/make_schema.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Whether all rows of the children of `array` count: it has no nulls itself, and all of its own
/// rows count.
bool has_whole_children(const DeviceArray& array, bool is_whole) {
  if (!is_whole) return false;
  return is_host_readable(array.device()) ? !array.has_nulls() : array.known_null_count() == 0;
}

/// Whether a null row of `array`, in host memory, counts.
bool has_used_nulls(const DeviceArray& array, const UsedRows& used) {
  const NullRows is_null(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (is_null[i] && used[i]) return true;
  }
  return false;
}

/// The rows of child `i` of a union that count: those of the rows with its type id.
UsedRows find_used_members(const DeviceArray& array, const UsedRows& used, int64_t i) {
  const int64_t count = array.child(i).length();
  const bool is_dense = array.type().layout == Layout::kDenseUnion;
  return find_used(array, used, count, [array, count, i, is_dense](int64_t row) {
    if (read_union_child(array, row) != i) return Range{};
    return Range{is_dense ? read_union_row(array, row, count) : row, 1};
  });
}

/// The child rows between the first and the last offset of a list; all of them where the host
/// cannot tell.
Range find_window(const DeviceArray& array) {
  const Range all{0, array.child(0).length()};
  if (!layout_row(array.type().layout).has_offsets() || !is_host_readable(array.device())) {
    return all;
  }
  if (array.length() == 0) return Range{};
  return visit_offset(array.type(), [&](auto zero) {
    return read_offsets<decltype(zero)>(array, Range{0, array.length()}, all.length);
  });
}

void check_nulls_of_tree(const DeviceArray& array, const Type& to, const UsedRows& used);

/// The items of the window of a list, of which no others are checked.
void check_nulls_of_items(const DeviceArray& array, const Type& to, const UsedRows& used) {
  const DeviceArray items = array.child(0);
  const Range window = find_window(array);
  const UsedRows used_items =
      find_used(array, used, window.length, [array, count = items.length(), window](int64_t row) {
        const Range rows = read_list(array, row, count);
        return Range{rows.length == 0 ? 0 : rows.start - window.start, rows.length};
      });
  check_nulls_of_tree(items.slice(window.start, window.length), to.children[0], used_items);
}

/// The rows that count in child `i` of an array that is not a list.
UsedRows find_used_rows_of(const DeviceArray& array, const UsedRows& used, int64_t i) {
  if (is_union(array.type())) return find_used_members(array, used, i);
  if (array.type().layout == Layout::kRunEndEncoded) {
    return i == 0 ? UsedRows() : find_used_runs(array, used);
  }
  if (has_whole_children(array, used.is_whole())) return used;
  return find_used(array, used, array.length(), [](int64_t row) { return Range{row, 1}; });
}

/// Raises ValueError if `array` has null rows of `used` and `to` is not nullable. Raises Undecided
/// instead if the nulls are not known, or do not count and still are in the bitmap.
void check_nulls(const DeviceArray& array, const Type& to, const UsedRows& used) {
  if (to.is_nullable() || !array.type().is_nullable()) return;
  const std::optional<bool> has_nulls = has_null_rows(array);
  if (!has_nulls.value_or(true)) return;
  const bool is_blind = !used.is_whole() && !is_host_readable(array.device());
  if (!has_nulls || is_blind || !has_used_nulls(array, used)) {
    raise_undecided("the field \"", array.type().name(), "\" is requested as not nullable and ",
                    !has_nulls ? "its nulls are not counted"
                    : is_blind ? "has nulls that may not count"
                               : "has nulls that do not count");
  }
  raise_value_error("the requested schema is incompatible with the data: the field \"",
                    array.type().name(), "\" of ", to_string(array.type()),
                    " has nulls and is requested as not nullable; fill or drop them first, or "
                    "request a nullable field");
}

/// As check_nulls, for `array` and all of its children and dictionaries, which `to` takes as they
/// are.
void check_nulls_of_tree(const DeviceArray& array, const Type& to, const UsedRows& used) {
  check_nulls(array, to, used);
  if (!narrows_nullability(array.type(), to)) return;
  if (to.dictionary != nullptr) {
    check_nulls_of_tree(array.dictionary(), *to.dictionary, find_used_values(array, used));
  }
  if (is_list(array.type())) return check_nulls_of_items(array, to, used);
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    check_nulls_of_tree(array.child(number), to.children[i],
                        find_used_rows_of(array, used, number));
  }
}

DeviceArray import_as(const Type& type, OwnedArray array) {
  return DeviceArray::import(copy_schema(*type.schema), std::move(array));
}

/// The rows of the fields of a struct that count; `lead` fields' rows come before the first.
UsedRows find_used_fields(const DeviceArray& array, const UsedRows& used, int64_t lead = 0) {
  if (has_whole_children(array, used.is_whole()) && lead == 0) return used;
  return find_used(array, used, lead + array.length(),
                   [lead](int64_t i) { return Range{lead + i, 1}; });
}

/// The values of lists that count, which `cast_lists` has cut at the offsets of `parts`.
UsedRows find_used_items(const DeviceArray& array, const Type& to, const UsedRows& used,
                         const ArrayParts& parts, int64_t count) {
  if (used.is_whole() && parts.null_count == 0) return used;
  if (to.layout == Layout::kFixedSizeList) {
    return find_used(array, used, count,
                     [size = to.list_size](int64_t i) { return Range{i * size, size}; });
  }
  return visit_offset(to, [&](auto zero) {
    const OffsetRows<decltype(zero)> rows{{}, parts.buffers[1]};
    return find_used(array, used, count,
                     [rows](int64_t i) { return Range{rows[i], rows.length_of(i)}; });
  });
}

/// The fields under the bitmap of `array`. Reads no memory, so this works on any device.
void share_struct(const DeviceArray& array, const Type& to, const UsedRows& used,
                  ArrayParts* parts) {
  const std::vector<std::size_t> fields = match_fields(array.type(), to);
  parts->offset = array.validity() == nullptr ? 0 : array.offset();
  parts->null_count = array.known_null_count();
  parts->buffers.push_back(Buffer(array.storage(), array.validity(), 0));
  const DeviceArray whole = array.widened(parts->offset);
  const UsedRows used_fields = find_used_fields(array, used, parts->offset);
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    const DeviceArray child = whole.child(static_cast<int64_t>(fields[i]));
    parts->children.push_back(cast_rows(child, to.children[i], used_fields));
  }
}

void cast_struct(const DeviceArray& array, const Type& to, const UsedRows& used,
                 ArrayParts* parts) {
  const std::vector<std::size_t> fields = match_fields(array.type(), to);
  parts->buffers.push_back(copy_validity(array, &parts->null_count));
  const UsedRows used_fields = find_used_fields(array, used);
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    const DeviceArray child = array.child(static_cast<int64_t>(fields[i]));
    parts->children.push_back(cast_rows(child, to.children[i], used_fields));
  }
}

void cast_indices(const DeviceArray& array, const Type& to, const UsedRows& used,
                  ArrayParts* parts) {
  parts->buffers.push_back(copy_validity(array, &parts->null_count));
  cast_numbers(array, to, used, parts);
  const UsedRows used_values = find_used_values(array, used);
  parts->dictionary = cast_rows(array.dictionary(), *to.dictionary, used_values);
}

/// Keeps the offset, since run ends count from the first row of the whole array.
void cast_runs(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts) {
  parts->offset = array.offset();
  const UsedRows used_runs = find_used_runs(array, used);
  for (int64_t i = 0; i < 2; ++i) {
    const Type& child = to.children[static_cast<std::size_t>(i)];
    parts->children.push_back(cast_rows(array.child(i), child, used_runs));
  }
}

void cast_items(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts) {
  if (const auto items = cast_lists(array, to, used, parts)) {
    const UsedRows used_items = find_used_items(array, to, used, *parts, items->length());
    parts->children.push_back(cast_rows(*items, to.children[0], used_items));
  }
}

/// The items of lists of `size` that count.
UsedRows find_used_in(const DeviceArray& array, const UsedRows& used, int64_t size) {
  return find_used(array, used, array.length() * size,
                   [size](int64_t i) { return Range{i * size, size}; });
}

/// A fixed_shape_tensor as nested lists, or the reverse.
void reshape(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts) {
  const std::vector<int64_t>& shape = *find_common_shape(array.type(), to);
  const std::size_t inner = shape.size() - 1;
  const int64_t own_size = array.type().list_size;
  const Type& item = to.children[0];
  if (array.type().extension == Extension::kFixedShapeTensor) {
    OwnedArray values =
        cast_rows(array.child(0), *find_innermost(to, shape), find_used_in(array, used, own_size));
    parts->children.push_back(
        nest_values(std::move(values), item, inner, array.length() * to.list_size));
  } else {
    const DeviceArray values =
        flatten_lists(array.child(0), inner, find_used_in(array, used, own_size));
    parts->children.push_back(cast_rows(values, item, find_used_in(array, used, to.list_size)));
  }
}

OwnedArray decode(const DeviceArray& array, const Type& to, const UsedRows& used) {
  const DeviceArray dictionary = array.dictionary();
  const std::vector<RowIndex> rows = find_dictionary_rows(array, dictionary.length());
  if (dictionary.length() == 0) return make_nulls(to, array.length());
  const UsedRows used_values = find_used_values(array, used);
  return decode_dictionary(array, import_as(to, cast_rows(dictionary, to, used_values)), rows);
}

void encode(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts) {
  const Type& type = *to.dictionary;
  const UsedRows used_values =
      find_used(array, used, array.length(), [](int64_t i) { return Range{i, 1}; });
  encode_dictionary(import_as(type, cast_rows(array, type, used_values)), to, parts);
}

Buffer pack(const DeviceArray& array) {
  return pack_bools(ElementReader<uint8_t>(array, 1).address(0), array.length());
}

Buffer unpack(const DeviceArray& array) {
  uint8_t* target = nullptr;
  Buffer bools = Buffer::allocate(array.length(), &target);
  if (array.length() > 0) {
    unpack_bits(array.buffer_as<uint8_t>(1), array.offset(), array.length(), target);
  }
  return bools;
}

/// Nodes of the same type with children or a dictionary of another one.
void rebuild(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts) {
  if (to.dictionary != nullptr) return cast_indices(array, to, used, parts);
  if (to.layout == Layout::kRunEndEncoded) return cast_runs(array, to, used, parts);
  parts->buffers.push_back(copy_validity(array, &parts->null_count));
  cast_items(array, to, used, parts);
}

ArrayParts make_parts(const DeviceArray& array, const Type& to, Cast cast, const UsedRows& used) {
  ArrayParts parts;
  parts.length = array.length();
  const auto with_validity = [&] {
    parts.buffers.push_back(copy_validity(array, &parts.null_count));
    return &parts;
  };
  switch (cast) {
    case Cast::kSame:
      rebuild(array, to, used, &parts);
      break;
    case Cast::kStruct:
      cast_struct(array, to, used, &parts);
      break;
    case Cast::kNumbers:
      cast_numbers(array, to, used, with_validity());
      break;
    case Cast::kUnits:
      cast_units(array, to, used, with_validity());
      break;
    case Cast::kPackBits:
      with_validity()->buffers.push_back(pack(array));
      break;
    case Cast::kUnpackBits:
      with_validity()->buffers.push_back(unpack(array));
      break;
    case Cast::kBinary:
      cast_binary(array, to, with_validity());
      break;
    case Cast::kList:
      cast_items(array, to, used, with_validity());
      break;
    case Cast::kReshape:
      reshape(array, to, used, with_validity());
      break;
    case Cast::kIndices:
      cast_indices(array, to, used, &parts);
      break;
    case Cast::kEncode:
      encode(array, to, used, with_validity());
      break;
    case Cast::kRuns:
      cast_runs(array, to, used, &parts);
      break;
    default:
      raise_value_error("no cast from ", to_string(array.type()), " to ", to_string(to));
  }
  return parts;
}

}  // namespace

OwnedArray cast_rows(const DeviceArray& array, const Type& to, const UsedRows& used) {
  const Fit fit = find_fit(array.type(), to);
  if (fit == Fit::kSame) {
    check_nulls_of_tree(array, to, used);
    return share_array(array);
  }
  check_nulls(array, to, used);
  const Cast cast = find_cast(array.type(), to).cast;
  if (fit == Fit::kShared) {
    ArrayParts parts;
    parts.length = array.length();
    share_struct(array, to, used, &parts);
    return make_array(std::move(parts));
  }
  if (cast == Cast::kNulls) return make_nulls(to, array.length());
  if (cast == Cast::kBools) return share_array(cast_dtype(array, *to.dtype, CastWhich::kAll));
  if (cast == Cast::kDecode) return decode(array, to, used);
  if (cast == Cast::kDecodeRuns) return cast_rows(decode_run_ends(array), to, used);
  return make_array(make_parts(array, to, cast, used));
}

ARROWDL_END_NAMESPACE
