// Casts numbers to wider types.
#include "cast/cast_numbers.hpp"

#include <cstring>
#include <limits>
#include <type_traits>

#include "array/row_access.hpp"
#include "compute/allocate_elements.hpp"

namespace arrowdl {
namespace {

/// The bits of a float16.
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

/// Calls `visit` with an element of `dtype`, an integer or a real number.
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

/// The elements of `array`, converted.
template <typename From, typename To>
Buffer convert_elements(const DeviceArray& array) {
  To* target = nullptr;
  Buffer buffer = allocate_elements(array.length(), &target);
  const ElementReader<From> elements(array, 1);
  for (int64_t i = 0; i < array.length(); ++i) target[i] = convert<To>(elements[i]);
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

}  // namespace arrowdl
