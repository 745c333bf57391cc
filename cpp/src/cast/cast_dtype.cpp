// Casts the numbers of an array to another dtype.
#include "cast/cast_dtype.hpp"

#include <cstdio>
#include <vector>

#include "array/host_access.hpp"
#include "array/row_access.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "cast/convert_number.hpp"
#include "cast/copy_validity.hpp"
#include "compute/allocate_elements.hpp"
#include "schema/copy_schema.hpp"

namespace arrowdl {
namespace {

bool is_real(const Dtype& dtype) {
  return dtype.code == kDLInt || dtype.code == kDLUInt || dtype.code == kDLFloat ||
         dtype.code == kDLBfloat;
}

/// Numbers, not temporal types, which are read as their physical integers.
bool is_number(const Type& type) {
  return type.dtype != nullptr && type.dictionary == nullptr &&
         type.layout == Layout::kFixedWidth && is_real(*type.dtype) &&
         type.schema->format[0] != 't';
}

bool is_bool(const Type& type) {
  return type.layout == Layout::kBoolean ||
         (type.extension == Extension::kDtype && type.dtype->code == kDLBool);
}

template <typename Number>
std::string show(Number value) {
  if constexpr (std::is_integral_v<Number>) {
    return std::to_string(value);
  } else {
    char text[32];
    std::snprintf(text, sizeof(text), "%.17g", to_double(value));
    return text;
  }
}

template <typename Number>
[[noreturn]] void raise_unfit(int64_t row, Number value, const Dtype& dtype) {
  const double number = to_double(value);
  const bool is_integer = dtype.code == kDLInt || dtype.code == kDLUInt;
  const char* reason = " is beyond the range of ";
  if (is_integer && !std::isfinite(number)) {
    reason = " is not in ";
  } else if (is_integer && std::floor(number) != number) {
    reason = " is no whole number, and dtype= is ";
  }
  throw UnfitValue(row, concat(show(value), reason, dtype.name,
                               ": choose a dtype that holds it, or change the value first"));
}

/// The elements of `array`, which are From, as To.
template <typename From, typename To>
Buffer convert_elements(const DeviceArray& array, const Dtype& dtype) {
  To* target = nullptr;
  Buffer buffer = allocate_elements(array.length(), &target);
  const ElementReader<From> elements(array, 1);
  const int64_t length = array.length();
  unsigned unfit = 0;
  for (int64_t i = 0; i < length; ++i) {
    unfit |= static_cast<unsigned>(!convert_number(elements[i], target + i));
  }
  if (unfit == 0) return buffer;
  const RowValidity is_valid(array);
  for (int64_t i = 0; i < length; ++i) {
    To result;
    if (convert_number(elements[i], &result)) continue;
    if (is_valid[i]) raise_unfit(i, elements[i], dtype);
  }
  return buffer;
}

DeviceArray with_values(const DeviceArray& array, const Dtype& dtype, Buffer values) {
  DeviceArray made = DeviceArray::make_primitive(dtype, array.length(), std::move(values), {});
  if (!array.has_nulls()) return made;
  int64_t null_count = 0;
  Buffer validity = copy_validity(array, &null_count);
  return made.with_validity(std::move(validity), null_count);
}

DeviceArray cast_values(const DeviceArray& array, const Dtype& dtype) {
  Buffer values;
  visit_number(*array.type().dtype, [&](auto from) {
    visit_number(dtype, [&](auto to) {
      values = convert_elements<decltype(from), decltype(to)>(array, dtype);
    });
  });
  return with_values(array, dtype, std::move(values));
}

/// Bools, as bits or as bytes of which any other than 0 is true.
DeviceArray cast_bools(const DeviceArray& array, const Dtype& dtype) {
  uint8_t* bytes = nullptr;
  Buffer bools = Buffer::allocate(array.length(), &bytes);
  if (array.length() > 0 && array.type().layout == Layout::kBoolean) {
    unpack_bits(array.buffer_as<uint8_t>(1), array.offset(), array.length(), bytes);
  } else {
    const ElementReader<uint8_t> elements(array, 1);
    for (int64_t i = 0; i < array.length(); ++i) bytes[i] = elements[i] != 0 ? 1 : 0;
  }
  const Dtype& uint8 = *find_dtype("uint8");
  return cast_values(with_values(array, uint8, std::move(bools)), dtype);
}

/// `schema` with another child.
OwnedSchema replace_child(OwnedSchema schema, OwnedSchema child) {
  ArrowSchema* place = schema->children[0];
  child = rename_schema(std::move(child), place->name == nullptr ? "" : place->name);
  child->flags = place->flags;
  place->release(place);
  child.move(place);
  return schema;
}

DeviceArray cast_lists(const DeviceArray& array, const Dtype& dtype, CastWhich which) {
  const DeviceArray values = array.child(0);
  const int64_t size = array.type().list_size;
  DeviceArray made;
  try {
    made = cast_dtype(values, dtype, which);
  } catch (const UnfitValue& error) {
    throw error.at_row(error.row() / size);
  }
  if (made.storage() == values.storage()) return array;
  ArrayParts parts;
  parts.length = array.length();
  parts.buffers.push_back(copy_validity(array, &parts.null_count));
  parts.children.push_back(share_array(made));
  return DeviceArray::import(replace_child(copy_schema(*array.type().schema), made.export_schema()),
                             make_array(std::move(parts)));
}

}  // namespace

bool can_cast_to(const Dtype& dtype) { return is_real(dtype); }

bool has_numbers(const Type& type, CastWhich which) {
  if (type.dictionary != nullptr) return which == CastWhich::kAll;
  if (type.layout == Layout::kFixedSizeList && type.extension != Extension::kDtype) {
    return has_numbers(type.children[0], which);
  }
  if (type.layout == Layout::kRunEndEncoded) return has_numbers(type.children[1], which);
  return is_number(type) || (which == CastWhich::kAll && is_bool(type));
}

DeviceArray cast_dtype(const DeviceArray& array, const Dtype& dtype, CastWhich which) {
  const Type& type = array.type();
  if (!has_numbers(type, which)) {
    if (which == CastWhich::kNumbers) return array;
    raise_value_error("dtype=\"", dtype.name, "\" is for numbers, bools and dictionary codes, not ",
                      to_string(type), ": leave the column out of dtype=");
  }
  if (type.dictionary == nullptr && type.dtype == &dtype) return array;
  require_host_readable(array, "cast numbers");
  if (type.dictionary != nullptr) return cast_dtype(array.indices(), dtype, which);
  if (type.layout == Layout::kRunEndEncoded) {
    return cast_dtype(decode_run_ends(array), dtype, which);
  }
  if (type.layout == Layout::kFixedSizeList) return cast_lists(array, dtype, which);
  return is_bool(type) ? cast_bools(array, dtype) : cast_values(array, dtype);
}

}  // namespace arrowdl
