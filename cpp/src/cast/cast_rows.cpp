#include "array/row_access.hpp"
#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "cast/cast.hpp"
#include "util/bitmap_writer.hpp"

namespace arrowdl {
namespace {

// ---------------------------------------------------------------- nulls

/// Raises where `array` has nulls and `to` may have none.
void check_nulls(const DeviceArray& array, const Type& to, bool is_whole) {
  if (to.is_nullable() || !array.type().is_nullable()) return;
  const bool is_known = is_host_readable(array.device()) || array.known_null_count() >= 0;
  if (is_known && !array.has_nulls()) return;
  if (!is_known || !is_whole) {
    raise_misfit("the field \"", array.type().name(), "\" is asked for without nulls and ",
                 is_known ? "has some that may not count" : "nobody has counted its nulls");
  }
  raise_value_error("the requested schema is incompatible with the data: the field \"",
                    array.type().name(), "\" of ", to_string(array.type()),
                    " has nulls and is asked for as one that is not nullable; fill or drop them "
                    "first, or ask for a nullable field");
}

/// Whether all that lies below `array` counts as it does itself.
bool has_whole_children(const DeviceArray& array, bool is_whole) {
  if (!is_whole) return false;
  return is_host_readable(array.device()) ? !array.has_nulls() : array.known_null_count() == 0;
}

/// Child 0 of a list, as far as the host can tell what of it the rows take; `*is_whole` says
/// whether they take all of that.
DeviceArray find_items(const DeviceArray& array, bool* is_whole) {
  DeviceArray items = array.child(0);
  const Layout layout = array.type().layout;
  if (layout == Layout::kFixedSizeList) return items;
  const bool has_offsets = layout == Layout::kList || layout == Layout::kLargeList;
  if (!has_offsets || !is_host_readable(array.device())) {
    *is_whole = false;
    return items;
  }
  if (array.length() == 0) return items.slice(0, 0);
  const Range rows{0, array.length()};
  const Range used = layout == Layout::kList ? read_offsets<int32_t>(array, rows, items.length())
                                             : read_offsets<int64_t>(array, rows, items.length());
  return items.slice(used.start, used.length);
}

/// check_nulls for all that lies below `array`, whose buffers serve as they are.
void check_nulls_below(const DeviceArray& array, const Type& to, bool is_whole) {
  check_nulls(array, to, is_whole);
  if (!narrows_nullability(array.type(), to)) return;
  bool is_child_whole = has_whole_children(array, is_whole);
  if (to.dictionary != nullptr) check_nulls_below(array.dictionary(), *to.dictionary, false);
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    const bool is_list = to.children.size() == 1 && array.type().layout != Layout::kStruct;
    const DeviceArray child =
        is_list ? find_items(array, &is_child_whole) : array.child(static_cast<int64_t>(i));
    const bool is_field = is_list || array.type().layout == Layout::kStruct;
    check_nulls_below(child, to.children[i], is_field && is_child_whole);
  }
}

// ---------------------------------------------------------------- nested

/// The fields over bits that stay where they are: no memory is read, on any device.
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

/// Run ends are counted from the first row of the whole, so the window stays one.
void cast_runs(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  parts->offset = array.offset();
  for (int64_t i = 0; i < 2; ++i) {
    const Type& child = to.children[static_cast<std::size_t>(i)];
    parts->children.push_back(cast_rows(array.child(i), child, false));
  }
}

void pack(const DeviceArray& array, ArrayParts* parts) {
  uint8_t* target = nullptr;
  parts->buffers.push_back(Buffer::allocate(bitmap_size(array.length()), &target));
  if (array.length() == 0) return;
  pack_bits(ElementReader<uint8_t>(array, 1).address(0), array.length(), target);
}

void unpack(const DeviceArray& array, ArrayParts* parts) {
  uint8_t* target = nullptr;
  parts->buffers.push_back(Buffer::allocate(array.length(), &target));
  if (array.length() == 0) return;
  unpack_bits(array.buffer_as<uint8_t>(1), array.offset(), array.length(), target);
}

/// What find_cast calls the same, made anew around what lies below it.
void rebuild(const DeviceArray& array, const Type& to, bool is_whole, ArrayParts* parts) {
  if (to.dictionary != nullptr) return cast_indices(array, to, parts);
  if (to.layout == Layout::kRunEndEncoded) return cast_runs(array, to, parts);
  parts->buffers.push_back(copy_validity(array, &parts->null_count));
  cast_list(array, to, is_whole, parts);
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
      pack(array, with_validity());
      break;
    case Cast::kUnpackBits:
      unpack(array, with_validity());
      break;
    case Cast::kBinary:
      cast_binary(array, to, with_validity());
      break;
    case Cast::kList:
      cast_list(array, to, is_whole, with_validity());
      break;
    case Cast::kReshape:
      reshape_lists(array, to, with_validity());
      break;
    case Cast::kIndices:
      cast_indices(array, to, &parts);
      break;
    case Cast::kEncode:
      encode_dictionary(array, to, with_validity());
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

Buffer copy_validity(const DeviceArray& array, int64_t* null_count) {
  *null_count = 0;
  if (array.validity() == nullptr || array.length() == 0) return {};
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(array.length()), &target);
  copy_bits(array.validity(), array.offset(), array.length(), target);
  *null_count = array.length() - count_set_bits(target, 0, array.length());
  return *null_count == 0 ? Buffer() : bits;
}

OwnedArray cast_rows(const DeviceArray& array, const Type& to, bool is_whole) {
  const Fit fit = find_fit(array.type(), to);
  if (fit == Fit::kSame) {
    check_nulls_below(array, to, is_whole);
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
  if (cast == Cast::kDecode) return decode_dictionary(array, to);
  if (cast == Cast::kDecodeRuns) return cast_rows(decode_run_ends(array), to, is_whole);
  return make_array(make_parts(array, to, cast, is_whole));
}

}  // namespace arrowdl
