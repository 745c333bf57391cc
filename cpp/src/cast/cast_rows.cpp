// Casts arrays to another type of the same data.
#include "cast/cast_rows.hpp"

#include "array/row_access.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/error.hpp"
#include "cast/cast_binary.hpp"
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
#include "compute/pack_bools.hpp"
#include "schema/copy_schema.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

DeviceArray import_as(const Type& type, OwnedArray array) {
  return DeviceArray::import(copy_schema(*type.schema), std::move(array));
}

/// The fields under the bitmap of `array`. Reads no memory, so this works on any device.
void share_struct(const DeviceArray& array, const Type& to, bool is_whole, ArrayParts* parts) {
  const std::vector<std::size_t> fields = match_fields(array.type(), to);
  parts->offset = array.validity() == nullptr ? 0 : array.offset();
  parts->null_count = array.known_null_count();
  parts->buffers.push_back(Buffer(array.storage(), array.validity(), 0));
  const DeviceArray whole = array.widened(parts->offset);
  const bool is_child_whole = has_whole_children(array, is_whole) && parts->offset == 0;
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    const DeviceArray child = whole.child(static_cast<int64_t>(fields[i]));
    parts->children.push_back(cast_rows(child, to.children[i], is_child_whole));
  }
}

void cast_struct(const DeviceArray& array, const Type& to, bool is_whole, ArrayParts* parts) {
  const std::vector<std::size_t> fields = match_fields(array.type(), to);
  parts->buffers.push_back(copy_validity(array, &parts->null_count));
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    const DeviceArray child = array.child(static_cast<int64_t>(fields[i]));
    parts->children.push_back(cast_rows(child, to.children[i], is_whole && parts->null_count == 0));
  }
}

void cast_indices(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  parts->buffers.push_back(copy_validity(array, &parts->null_count));
  cast_numbers(array, to, parts);
  parts->dictionary = cast_rows(array.dictionary(), *to.dictionary, false);
}

/// Keeps the offset, since run ends count from the first row of the whole array.
void cast_runs(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  parts->offset = array.offset();
  for (int64_t i = 0; i < 2; ++i) {
    const Type& child = to.children[static_cast<std::size_t>(i)];
    parts->children.push_back(cast_rows(array.child(i), child, false));
  }
}

void cast_items(const DeviceArray& array, const Type& to, bool is_whole, ArrayParts* parts) {
  const bool is_child_whole = is_whole && parts->null_count == 0;
  if (const auto items = cast_lists(array, to, parts)) {
    parts->children.push_back(cast_rows(*items, to.children[0], is_child_whole));
  }
}

/// A fixed_shape_tensor as nested lists, or the reverse.
void reshape(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  const std::vector<int64_t>& shape = *find_common_shape(array.type(), to);
  const std::size_t inner = shape.size() - 1;
  const DeviceArray values = array.child(0);
  const Type& item = to.children[0];
  if (array.type().extension == Extension::kFixedShapeTensor) {
    parts->children.push_back(nest_values(cast_rows(values, *find_innermost(to, shape), false),
                                          item, inner, array.length() * to.list_size));
  } else {
    parts->children.push_back(cast_rows(flatten_lists(values, inner), item, false));
  }
}

OwnedArray decode(const DeviceArray& array, const Type& to) {
  const DeviceArray dictionary = array.dictionary();
  const std::vector<RowIndex> rows = find_dictionary_rows(array, dictionary.length());
  if (dictionary.length() == 0) return make_nulls(to, array.length());
  return decode_dictionary(array, import_as(to, cast_rows(dictionary, to, false)), rows);
}

void encode(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  const Type& type = *to.dictionary;
  encode_dictionary(import_as(type, cast_rows(array, type, false)), to, parts);
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
void rebuild(const DeviceArray& array, const Type& to, bool is_whole, ArrayParts* parts) {
  if (to.dictionary != nullptr) return cast_indices(array, to, parts);
  if (to.layout == Layout::kRunEndEncoded) return cast_runs(array, to, parts);
  parts->buffers.push_back(copy_validity(array, &parts->null_count));
  cast_items(array, to, is_whole, parts);
}

ArrayParts make_parts(const DeviceArray& array, const Type& to, Cast cast, bool is_whole) {
  ArrayParts parts;
  parts.length = array.length();
  const auto with_validity = [&] {
    parts.buffers.push_back(copy_validity(array, &parts.null_count));
    return &parts;
  };
  switch (cast) {
    case Cast::kSame:
      rebuild(array, to, is_whole, &parts);
      break;
    case Cast::kStruct:
      cast_struct(array, to, is_whole, &parts);
      break;
    case Cast::kNumbers:
      cast_numbers(array, to, with_validity());
      break;
    case Cast::kUnits:
      cast_units(array, to, with_validity());
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
      cast_items(array, to, is_whole, with_validity());
      break;
    case Cast::kReshape:
      reshape(array, to, with_validity());
      break;
    case Cast::kIndices:
      cast_indices(array, to, &parts);
      break;
    case Cast::kEncode:
      encode(array, to, with_validity());
      break;
    case Cast::kRuns:
      cast_runs(array, to, &parts);
      break;
    default:
      raise_value_error("no cast from ", to_string(array.type()), " to ", to_string(to));
  }
  return parts;
}

}  // namespace

OwnedArray cast_rows(const DeviceArray& array, const Type& to, bool is_whole) {
  const Fit fit = find_fit(array.type(), to);
  if (fit == Fit::kSame) {
    check_nulls_of_tree(array, to, is_whole);
    return share_array(array);
  }
  check_nulls(array, to, is_whole);
  const Cast cast = find_cast(array.type(), to).cast;
  if (fit == Fit::kShared) {
    ArrayParts parts;
    parts.length = array.length();
    share_struct(array, to, is_whole, &parts);
    return make_array(std::move(parts));
  }
  if (cast == Cast::kNulls) return make_nulls(to, array.length());
  if (cast == Cast::kDecode) return decode(array, to);
  if (cast == Cast::kDecodeRuns) return cast_rows(decode_run_ends(array), to, is_whole);
  return make_array(make_parts(array, to, cast, is_whole));
}

ARROWDL_END_NAMESPACE
