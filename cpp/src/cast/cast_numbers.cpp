#include <cstring>
#include <limits>
#include <type_traits>

#include "array/row_access.hpp"
#include "cast/cast.hpp"
#include "compute/gather.hpp"
#include "util/overflow.hpp"

namespace arrowdl {
namespace {

/// float16 as it lies.
struct Half {
  uint16_t bits;
  explicit operator float() const noexcept { return ArrowHalfFloatToFloat(bits); }
};

/// bfloat16: the upper half of a float32.
struct Bfloat {
  uint16_t bits;
  explicit operator float() const noexcept {
    const uint32_t whole = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &whole, sizeof(value));
    return value;
  }
};

template <typename To, typename From>
To convert(From value) noexcept {
  if constexpr (std::is_class_v<From>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

/// Whether each From is a To.
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

/// Calls `visit` with an element of `dtype`, which is an integer or a real number.
template <typename Visit>
void visit_number(const Dtype& dtype, const Visit& visit) {
  const bool is_signed = dtype.code == kDLInt;
  if (dtype.code == kDLBfloat) return visit(Bfloat{});
  if (dtype.code == kDLFloat) {
    return dtype.bits == 16 ? visit(Half{}) : dtype.bits == 32 ? visit(float{}) : visit(double{});
  }
  switch (dtype.bits) {
    case 8:
      return is_signed ? visit(int8_t{}) : visit(uint8_t{});
    case 16:
      return is_signed ? visit(int16_t{}) : visit(uint16_t{});
    case 32:
      return is_signed ? visit(int32_t{}) : visit(uint32_t{});
    default:
      return is_signed ? visit(int64_t{}) : visit(uint64_t{});
  }
}

/// What `array` has for each row, converted.
template <typename From, typename To>
Buffer convert_elements(const DeviceArray& array) {
  To* target = nullptr;
  Buffer buffer = allocate_elements(array.length(), &target);
  const ElementReader<From> elements(array, 1);
  for (int64_t i = 0; i < array.length(); ++i) target[i] = convert<To>(elements[i]);
  return buffer;
}

// ---------------------------------------------------------------- units

constexpr int64_t kMillisecondsPerDay = 86400000;

/// How many of a unit make a second; of dates, a day.
int64_t count_per_second(const char* format) {
  switch (format[1] == 'd' && format[2] == 'm' ? 'd' : format[2]) {
    case 'd':
      return kMillisecondsPerDay;
    case 'm':
      return 1000;
    case 'u':
      return 1000000;
    case 'n':
      return 1000000000;
    default:  // seconds, and days of a date
      return 1;
  }
}

[[noreturn]] void raise_unit_misfit(const DeviceArray& array, const Type& to, int64_t i,
                                    int64_t value) {
  raise_misfit("row ", i, " of ", to_string(array.type()), " is ", value, ", which no ",
               to_string(to), " is: ask for finer units or for the array's own");
}

/// Rows in units of which `per_second` make a second. What lies under a null becomes 0.
template <typename From, typename To>
Buffer convert_units(const DeviceArray& array, const Type& to) {
  const int64_t own = count_per_second(array.type().schema->format);
  const int64_t wanted = count_per_second(to.schema->format);
  To* target = nullptr;
  Buffer buffer = allocate_elements(array.length(), &target);
  const ElementReader<From> elements(array, 1);
  const RowValidity is_valid(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t value = is_valid[i] ? int64_t{elements[i]} : 0;
    int64_t converted = 0;
    bool fits = true;
    if (wanted >= own) {
      fits = checked_multiply(value, wanted / own, &converted);
    } else {
      converted = value / (own / wanted);
      fits = converted * (own / wanted) == value;
    }
    fits = fits && converted >= std::numeric_limits<To>::min() &&
           converted <= std::numeric_limits<To>::max();
    if (!fits) raise_unit_misfit(array, to, i, value);
    target[i] = static_cast<To>(converted);
  }
  return buffer;
}

}  // namespace

void cast_numbers(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  visit_number(*array.type().dtype, [&](auto from) {
    visit_number(*to.dtype, [&](auto wanted) {
      using From = decltype(from);
      using To = decltype(wanted);
      if constexpr (is_exact<From, To>()) {
        parts->buffers.push_back(convert_elements<From, To>(array));
      }
    });
  });
}

void cast_units(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  const bool is_long = array.type().byte_width == 8;
  Buffer units = to.byte_width == 8 ? is_long ? convert_units<int64_t, int64_t>(array, to)
                                              : convert_units<int32_t, int64_t>(array, to)
                 : is_long          ? convert_units<int64_t, int32_t>(array, to)
                                    : convert_units<int32_t, int32_t>(array, to);
  parts->buffers.push_back(std::move(units));
}

}  // namespace arrowdl
