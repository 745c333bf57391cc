// Casts arrays to another type of the same data.
#include "cast/cast_rows.hpp"

#include "array/row_access.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/error.hpp"
#include "cast/cast_binary.hpp"
#include "cast/cast_dtype.hpp"
#include "cast/cast_lists.hpp"
#include "cast/cast_numbers.hpp"
#include "cast/cast_units.hpp"
#include "cast/check_nulls.hpp"
#include "cast/common_shape.hpp"
#include "cast/copy_validity.hpp"
#include "cast/decode_dictionary.hpp"
#include "cast/encode_dictionary.hpp"
#include "cast/find_cast.hpp"
#include "cast/find_fit.hpp"
#include "cast/make_nulls.hpp"
#include "cast/match_fields.hpp"
#include "cast/reshape_lists.hpp"
#include "cast/value_offsets.hpp"
#include "compute/pack_bools.hpp"
#include "schema/copy_schema.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

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
