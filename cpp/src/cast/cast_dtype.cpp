// Casts the numbers of an array to another dtype.
#include "cast/cast_dtype.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "array/host_access.hpp"
#include "array/null_rows.hpp"
#include "array/row_access.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "cast/casts.hpp"
#include "cast/convert_number.hpp"
#include "cast/nulls.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/plain_rows.hpp"
#include "schema/make_schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr Dtype kTimeUnits[] = {
    {"timestamp[s]", kDLInt, 64, "tss:", nullptr, 0},
    {"timestamp[ms]", kDLInt, 64, "tsm:", nullptr, 0},
    {"timestamp[us]", kDLInt, 64, "tsu:", nullptr, 0},
    {"timestamp[ns]", kDLInt, 64, "tsn:", nullptr, 0},
    {"duration[s]", kDLInt, 64, "tDs", nullptr, 0},
    {"duration[ms]", kDLInt, 64, "tDm", nullptr, 0},
    {"duration[us]", kDLInt, 64, "tDu", nullptr, 0},
    {"duration[ns]", kDLInt, 64, "tDn", nullptr, 0},
};

bool is_time(const Dtype& dtype) { return dtype.format[0] == 't'; }

/// Whether `type` is of times that become times of `dtype`: dates and timestamps, or durations.
bool is_time_of(const Type& type, const Dtype& dtype) {
  const char* const format = type.schema->format;
  if (type.dtype == nullptr || type.dictionary != nullptr || format[0] != 't') return false;
  return format[1] == dtype.format[1] || (format[1] == 'd' && dtype.format[1] == 's');
}

bool is_real(const Dtype& dtype) {
  return dtype.bits >= 8 && (dtype.code == kDLInt || dtype.code == kDLUInt ||
                             dtype.code == kDLFloat || dtype.code == kDLBfloat);
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
    reason = " is not a whole number, and dtype= is ";
  }
  throw UnfitValue(row, show(value), concat(reason, dtype.name),
                   {"dtype", "", "choose a dtype that holds it, or change the value first"});
}

/// Whether a row is in no null list.
using IsRead = std::function<bool(int64_t)>;

/// Converts `count` elements of one type to another. Returns whether all fit.
using Conversion = bool (*)(const uint8_t* source, int64_t count, uint8_t* target);

template <typename From, typename To>
bool convert_elements(const uint8_t* source, int64_t count, uint8_t* target) noexcept {
  To* const results = reinterpret_cast<To*>(target);
  unsigned unfit = 0;
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, source + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    unfit |= static_cast<unsigned>(!convert_number(value, results + i));
  }
  return unfit == 0;
}

/// Whether conversions between the types go through doubles, which hold all elements exactly: fewer
/// pairs of types are compiled.
template <typename From, typename To>
constexpr bool goes_through_doubles() {
  constexpr bool is_exact = !std::is_integral_v<From> || sizeof(From) < sizeof(int64_t);
  constexpr bool is_short = std::is_class_v<From> || std::is_class_v<To>;
  constexpr bool from_float = std::is_same_v<From, float> && std::is_integral_v<To>;
  return is_exact && (is_short || from_float) && !std::is_same_v<From, double> &&
         !std::is_same_v<To, double>;
}

/// nullptr if the conversion goes through doubles.
Conversion find_conversion(const Dtype& from, const Dtype& to) {
  Conversion found = nullptr;
  visit_number(from, [&](auto element) {
    visit_number(to, [&](auto result) {
      if constexpr (!goes_through_doubles<decltype(element), decltype(result)>()) {
        found = &convert_elements<decltype(element), decltype(result)>;
      }
    });
  });
  return found;
}

bool convert(const Dtype& from, const Dtype& to, const uint8_t* source, int64_t count,
             uint8_t* target) {
  if (const Conversion direct = find_conversion(from, to)) return direct(source, count, target);
  const Dtype& float64 = *find_dtype("float64");
  const Conversion widen = find_conversion(from, float64);
  const Conversion narrow = find_conversion(float64, to);
  constexpr int64_t kBlock = 512;
  alignas(double) uint8_t doubles[kBlock * sizeof(double)];
  bool all_fit = true;
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = std::min(kBlock, count - i);
    widen(source + i * from.itemsize(), n, doubles);
    all_fit = narrow(doubles, n, target + i * to.itemsize()) && all_fit;
  }
  return all_fit;
}

DeviceArray with_values(const DeviceArray& array, const Dtype& dtype, Buffer values) {
  DeviceArray made = DeviceArray::make_primitive(dtype, array.length(), std::move(values), {});
  if (!array.has_nulls()) return made;
  int64_t null_count = 0;
  Buffer validity = copy_validity(array, &null_count);
  return made.with_validity(std::move(validity), null_count);
}

DeviceArray cast_values(const DeviceArray& array, const Dtype& dtype, const IsRead& is_read) {
  return with_values(array, dtype, convert_numbers(array, dtype, is_read));
}

DeviceArray cast_decimals(const DeviceArray& array, const Dtype& dtype, const IsRead& is_read) {
  Buffer values = convert_numbers(read_decimals(array, dtype, is_read), dtype, is_read);
  return with_values(array, dtype, std::move(values));
}

/// Times in the unit of `dtype`, as times.
DeviceArray cast_times(const DeviceArray& array, const Dtype& dtype, const IsRead& is_read) {
  const int64_t from = count_per_day(array.type().schema->format);
  const int64_t to = count_per_day(dtype.format);
  ArrayParts parts;
  parts.length = array.length();
  parts.buffers.push_back(copy_validity(array, &parts.null_count));
  parts.buffers.push_back(convert_numbers(array, *find_dtype("int64"), is_read));
  auto* const times = reinterpret_cast<int64_t*>(const_cast<uint8_t*>(parts.buffers[1].data()));
  const RowValidity is_valid(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t time = times[i];
    const bool fits = convert_unit(time, from, to, times + i);
    if (fits || !is_valid[i] || !is_read(i)) continue;
    throw UnfitValue(
        i, concat(time, " of ", to_string(array.type())),
        concat(to >= from ? " is beyond the range of " : " is not a whole number of ", dtype.name),
        {"dtype", "", "choose another unit, or round the times first"});
  }
  return DeviceArray::import(make_nested_schema(dtype.format, {}, ""),
                             make_array(std::move(parts)));
}

/// Bools, as bits or as bytes of which any other than 0 is true.
DeviceArray cast_bools(const DeviceArray& array, const Dtype& dtype, const IsRead& is_read) {
  uint8_t* bytes = nullptr;
  Buffer bools = Buffer::allocate(array.length(), &bytes);
  if (array.length() > 0 && array.type().layout == Layout::kBoolean) {
    unpack_bits(array.buffer_as<uint8_t>(1), array.offset(), array.length(), bytes);
  } else {
    const ElementReader<uint8_t> elements(array, 1);
    for (int64_t i = 0; i < array.length(); ++i) bytes[i] = elements[i] != 0 ? 1 : 0;
  }
  const Dtype& uint8 = *find_dtype("uint8");
  return cast_values(with_values(array, uint8, std::move(bools)), dtype, is_read);
}

DeviceArray cast_rows(const DeviceArray& array, const Dtype& dtype, CastWhich which,
                      const IsRead& is_read);

DeviceArray cast_lists(const DeviceArray& array, const Dtype& dtype, CastWhich which,
                       const IsRead& is_read) {
  const DeviceArray values = array.child(0);
  const int64_t size = array.type().list_size;
  const RowValidity is_valid(array);
  DeviceArray made;
  try {
    made = cast_rows(values, dtype, which,
                     [&](int64_t i) { return is_valid[i / size] && is_read(i / size); });
  } catch (const ExplainedError& error) {
    if (error.row() < 0) throw;
    throw error.at_row(error.row() / size);
  }
  if (made.storage() == values.storage()) return array;
  ArrayParts parts;
  parts.length = array.length();
  parts.buffers.push_back(copy_validity(array, &parts.null_count));
  parts.children.push_back(share_array(made));
  OwnedSchema schema = copy_schema(*array.type().schema);
  replace_child(schema, made.export_schema());
  return DeviceArray::import(std::move(schema), make_array(std::move(parts)));
}

/// cast_dtype of an array in host memory whose values are cast.
DeviceArray cast_rows(const DeviceArray& array, const Dtype& dtype, CastWhich which,
                      const IsRead& is_read) {
  const Type& type = array.type();
  if (type.dictionary != nullptr) {
    const DeviceArray codes = plain_rows(array);
    check_dictionary(codes);
    return cast_rows(codes.indices(), dtype, which, is_read);
  }
  if (is_of(type, dtype)) return array;
  if (type.layout == Layout::kRunEndEncoded) {
    return cast_rows(decode_run_ends(array), dtype, which, is_read);
  }
  if (type.layout == Layout::kFixedSizeList) return cast_lists(array, dtype, which, is_read);
  if (is_time(dtype)) return cast_times(array, dtype, is_read);
  if (is_decimal(type)) return cast_decimals(array, dtype, is_read);
  return is_bool(type) ? cast_bools(array, dtype, is_read) : cast_values(array, dtype, is_read);
}

}  // namespace

Buffer convert_numbers(const DeviceArray& array, const Dtype& dtype, const IsRead& is_read) {
  const Dtype& from = *array.type().dtype;
  const int64_t length = array.length();
  uint8_t* target = nullptr;
  Buffer values = allocate_elements(length, dtype.itemsize(), &target);
  if (length == 0) return values;
  const uint8_t* const source = array.buffer_as<uint8_t>(1) + array.offset() * from.itemsize();
  if (!convert(from, dtype, source, length, target)) {
    const RowValidity is_valid(array);
    for (int64_t i = 0; i < length; ++i) {
      const uint8_t* const element = source + i * from.itemsize();
      alignas(uint64_t) uint8_t result[sizeof(uint64_t)];
      if (convert(from, dtype, element, 1, result) || !is_valid[i] || !is_read(i)) continue;
      visit_number(from, [&](auto value) {
        std::memcpy(&value, element, sizeof(value));
        raise_unfit(i, value, dtype);
      });
    }
  }
  return values;
}

bool can_cast_to(const Dtype& dtype) { return is_real(dtype); }

const Dtype* find_time_unit(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTimeUnits), std::end(kTimeUnits),
                                   [&](const Dtype& row) { return row.name == name; });
  return found == std::end(kTimeUnits) ? nullptr : found;
}

bool is_of(const Type& type, const Dtype& dtype) {
  if (!is_time(dtype)) return type.dtype == &dtype;
  return type.dictionary == nullptr && std::strncmp(type.schema->format, dtype.format, 3) == 0;
}

bool has_numbers(const Type& type, const Dtype& dtype, CastWhich which) {
  if (type.extension == Extension::kRefused) return false;
  if (type.dictionary != nullptr) return which == CastWhich::kAll && !is_time(dtype);
  if (type.layout == Layout::kFixedSizeList && type.extension != Extension::kDtype) {
    return has_numbers(type.children[0], dtype, which);
  }
  if (type.layout == Layout::kRunEndEncoded) return has_numbers(type.children[1], dtype, which);
  if (is_time(dtype)) return is_time_of(type, dtype);
  return is_number(type) || is_decimal(type) || (which == CastWhich::kAll && is_bool(type));
}

DeviceArray cast_dtype(const DeviceArray& array, const Dtype& dtype, CastWhich which) {
  const Type& type = array.type();
  if (!has_numbers(type, dtype, which)) {
    if (which == CastWhich::kNumbers) return array;
    const bool needs_unit = type.schema->format[0] == 't' && !is_time(dtype);
    raise_value_error("dtype=\"", dtype.name, "\" is for ",
                      is_time(dtype) ? "dates, timestamps and durations, each to its own kind"
                                     : "numbers, bools and dictionary codes",
                      ", not ", to_string(type), ": leave the column out of dtype=",
                      needs_unit ? ", or give it a unit, as \"timestamp[us]\"" : "");
  }
  if (type.dictionary == nullptr && is_of(type, dtype)) return array;
  require_host_readable(array, "cast numbers");
  return cast_rows(array, dtype, which, [](int64_t) { return true; });
}

ARROWDL_END_NAMESPACE
