// Casts numbers, and times to other units.
#include <limits>
#include <type_traits>

#include "array/row_access.hpp"
#include "arrowdl/error.hpp"
#include "cast/cast_dtype.hpp"
#include "cast/casts.hpp"
#include "cast/convert_number.hpp"
#include "cast/misfit.hpp"
#include "compute/allocate_elements.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename To, typename From>
To convert(From value) noexcept {
  if constexpr (std::is_class_v<From>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

/// Whether a To holds every From exactly.
template <typename From, typename To>
constexpr bool is_exact() {
  using Own = std::numeric_limits<From>;
  using Wanted = std::numeric_limits<To>;
  if constexpr (std::is_class_v<From>) {
    return std::is_floating_point_v<To>;
  } else if constexpr (std::is_floating_point_v<From> == std::is_floating_point_v<To>) {
    return Wanted::digits >= Own::digits && Wanted::is_signed >= Own::is_signed;
  } else {
    return std::is_floating_point_v<To> && Wanted::digits >= Own::digits;
  }
}

/// The elements of `array`, converted.
template <typename From, typename To>
Buffer convert_elements(const DeviceArray& array) {
  To* target = nullptr;
  Buffer buffer = allocate_elements(array.length(), &target);
  const ElementReader<From> elements(array, 1);
  for (int64_t i = 0; i < array.length(); ++i) target[i] = convert<To>(elements[i]);
  return buffer;
}

[[noreturn]] void raise_unfit(const DeviceArray& array, const Type& to, int64_t row,
                              const std::string& value) {
  raise_value_error("row ", row, " of ", to_string(array.type()), " is ", value, ", which ",
                    to_string(to), " cannot hold: request a wider type, or that of the array");
}

/// The bits of the integers that a float type holds without gaps.
int count_digits(const Dtype& dtype) {
  if (dtype.code == kDLBfloat) return 8;
  return dtype.bits == 16 ? 11 : dtype.bits == 32 ? 24 : 53;
}

/// Raises ValueError for an integer that a float of `digits` bits does not hold exactly.
template <typename Integer>
void check_digits(const DeviceArray& array, const Type& to, const UsedRows& used, int digits) {
  const ElementReader<Integer> elements(array, 1);
  const RowValidity is_valid(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    const Integer value = elements[i];
    const auto bits = static_cast<uint64_t>(value);
    const uint64_t magnitude = value < Integer{0} ? uint64_t{0} - bits : bits;
    if (magnitude >> digits == 0 || !is_valid[i]) continue;
    const uint64_t lowest = magnitude & (~magnitude + 1);
    if ((magnitude / lowest) >> digits == 0 || !used[i]) continue;
    raise_unfit(array, to, i, std::to_string(value));
  }
}

bool is_integer(const Dtype& dtype) { return dtype.code == kDLInt || dtype.code == kDLUInt; }

/// The elements of `array`; those of `used` are checked.
Buffer convert_checked(const DeviceArray& array, const Type& to, const UsedRows& used) {
  if (is_integer(*array.type().dtype) && !is_integer(*to.dtype)) {
    visit_number(*array.type().dtype, [&](auto from) {
      if constexpr (std::is_integral_v<decltype(from)>) {
        check_digits<decltype(from)>(array, to, used, count_digits(*to.dtype));
      }
    });
  }
  try {
    return convert_numbers(array, *to.dtype, [&](int64_t row) { return used[row]; });
  } catch (const UnfitValue& error) {
    raise_unfit(array, to, error.row(), error.value());
  }
}

[[noreturn]] void raise_unit_misfit(const DeviceArray& array, const Type& to, int64_t i,
                                    int64_t value) {
  raise_misfit("row ", i, " of ", to_string(array.type()), " is ", value, ", which ", to_string(to),
               " cannot hold: request finer units, or those of the array");
}

/// The rows in the units of `to`. Values under a null, and those that no row uses and that do not
/// fit, become 0.
template <typename From, typename To>
Buffer convert_units(const DeviceArray& array, const Type& to, const UsedRows& used) {
  const int64_t own = count_per_day(array.type().schema->format);
  const int64_t wanted = count_per_day(to.schema->format);
  To* target = nullptr;
  Buffer buffer = allocate_elements(array.length(), &target);
  const ElementReader<From> elements(array, 1);
  const RowValidity is_valid(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t value = is_valid[i] ? int64_t{elements[i]} : 0;
    int64_t converted = 0;
    const bool fits = convert_unit(value, own, wanted, &converted) &&
                      converted >= std::numeric_limits<To>::min() &&
                      converted <= std::numeric_limits<To>::max();
    if (!fits && used[i]) raise_unit_misfit(array, to, i, value);
    target[i] = fits ? static_cast<To>(converted) : To{0};
  }
  return buffer;
}

}  // namespace

void cast_numbers(const DeviceArray& array, const Type& to, const UsedRows& used,
                  ArrayParts* parts) {
  bool is_done = false;
  visit_number(*array.type().dtype, [&](auto from) {
    visit_number(*to.dtype, [&](auto wanted) {
      using From = decltype(from);
      using To = decltype(wanted);
      if constexpr (is_exact<From, To>()) {
        parts->buffers.push_back(convert_elements<From, To>(array));
        is_done = true;
      }
    });
  });
  if (!is_done) parts->buffers.push_back(convert_checked(array, to, used));
}

void cast_units(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts) {
  const bool is_long = array.type().byte_width == 8;
  Buffer units = to.byte_width == 8 ? is_long ? convert_units<int64_t, int64_t>(array, to, used)
                                              : convert_units<int32_t, int64_t>(array, to, used)
                 : is_long          ? convert_units<int64_t, int32_t>(array, to, used)
                                    : convert_units<int32_t, int32_t>(array, to, used);
  parts->buffers.push_back(std::move(units));
}

ARROWDL_END_NAMESPACE
