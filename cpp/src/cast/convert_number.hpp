// The C++ types of Arrow's numbers, and exact conversions between them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "arrowdl/dtype.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The bits of a float16.
struct Half {
  uint16_t bits;
  /// nanoarrow's ArrowHalfFloatToFloat is wrong for subnormal numbers.
  explicit operator float() const noexcept {
    const uint32_t exponent = (bits >> 10) & 0x1F;
    const uint32_t mantissa = bits & 0x3FF;
    if (exponent == 0) {  // multiples of 2^-24
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
      return (bits & 0x8000) != 0 ? -magnitude : magnitude;
    }
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t biased = exponent == 0x1F ? 0xFF : exponent + 112;
    const uint32_t whole = sign | (biased << 23) | (mantissa << 13);
    float value;
    std::memcpy(&value, &whole, sizeof(value));
    return value;
  }
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

template <typename To, typename From>
To reinterpret_bits(From value) noexcept {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

/// The nearest float16, to even on ties; infinity beyond its range.
inline Half round_to_half(float value) noexcept {
  constexpr uint32_t kSmallestNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kInfinity = 0x7F800000;
  const auto bits = reinterpret_bits<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  const auto with_sign = [&](uint32_t half) { return Half{static_cast<uint16_t>(sign | half)}; };
  if (magnitude > kInfinity) return with_sign(0x7E00);
  if (magnitude >= 0x47800000) return with_sign(0x7C00);  // 2^16
  if (magnitude < kSmallestNormal) {  // the addition rounds to multiples of 2^-24, as 0.5 has them
    const float sum = reinterpret_bits<float>(magnitude) + 0.5F;
    return with_sign(reinterpret_bits<uint32_t>(sum) - 0x3F000000);
  }
  magnitude += 0xFFF + ((magnitude >> 13) & 1);
  return with_sign((magnitude - 0x38000000) >> 13);
}

/// The nearest bfloat16, to even on ties; infinity beyond its range.
inline Bfloat round_to_bfloat(float value) noexcept {
  const auto bits = reinterpret_bits<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) {
    return Bfloat{static_cast<uint16_t>(((bits >> 16) & 0x8000) | 0x7FC0)};
  }
  return Bfloat{static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

/// A float that rounds to the same shorter float as `value` does: of the two floats around it, the
/// one with the odd mantissa. Rounding to the nearest twice would be wrong near ties.
inline float round_to_odd(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  const auto bits = reinterpret_bits<uint32_t>(nearest);
  if (static_cast<double>(nearest) == value || value != value || (bits & 1) != 0) return nearest;
  const bool is_beyond = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  return reinterpret_bits<float>(is_beyond ? bits - 1 : bits + 1);
}

/// The same of an integer.
template <typename Integer>
double round_to_odd_double(Integer value) noexcept {
  if constexpr (sizeof(Integer) < sizeof(int64_t)) {
    return static_cast<double>(value);
  } else {
    const bool is_negative = value < 0;
    uint64_t magnitude = static_cast<uint64_t>(value);
    if (is_negative) magnitude = 0 - magnitude;
    constexpr uint64_t kDropped = 0x7FF;
    if (magnitude >> 53 != 0) {
      magnitude = (magnitude & ~kDropped) | ((magnitude & kDropped) != 0 ? kDropped + 1 : 0);
    }
    const auto rounded = static_cast<double>(magnitude);
    return is_negative ? -rounded : rounded;
  }
}

template <typename From>
double to_double(From value) noexcept {
  if constexpr (std::is_class_v<From>) {
    return static_cast<double>(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<From>) {
    return round_to_odd_double(value);
  } else {
    return static_cast<double>(value);
  }
}

template <typename To, typename From>
bool convert_integer(From value, To* result) noexcept {
  *result = static_cast<To>(value);
  return static_cast<From>(*result) == value && (*result < To{0}) == (value < From{0});
}

/// NaN fits no integer.
template <typename To>
bool convert_to_integer(double value, To* result) noexcept {
  constexpr auto kLeast = static_cast<double>(std::numeric_limits<To>::min());
  // One more than the greatest To, which a double need not hold.
  constexpr double kEnd = static_cast<double>(std::numeric_limits<To>::max() / 2 + 1) * 2;
  const bool fits = value >= kLeast && value < kEnd && std::floor(value) == value;
  *result = fits ? static_cast<To>(value) : To{0};
  return fits;
}

inline bool is_infinite(float value) noexcept {
  return std::fabs(value) == std::numeric_limits<float>::infinity();
}

/// Converts `value` to the nearest To. Returns whether To can hold it; `*result` is some To if not.
template <typename To, typename From>
bool convert_number(From value, To* result) noexcept {
  static_assert(std::numeric_limits<double>::is_iec559, "conversions overflow to infinity");
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    return convert_integer(value, result);
  } else if constexpr (std::is_integral_v<To>) {
    return convert_to_integer(to_double(value), result);
  } else if constexpr (std::is_same_v<To, double>) {
    if constexpr (std::is_integral_v<From>) {
      *result = static_cast<double>(value);
    } else {
      *result = to_double(value);
    }
    return true;
  } else if constexpr (std::is_same_v<To, float>) {
    *result = static_cast<float>(value);
    if constexpr (std::is_same_v<From, double>) {
      return !is_infinite(*result) || std::isinf(value);
    } else {
      return true;
    }
  } else {
    const double whole = to_double(value);
    const float shorter = round_to_odd(whole);
    if constexpr (std::is_same_v<To, Half>) {
      *result = round_to_half(shorter);
    } else {
      *result = round_to_bfloat(shorter);
    }
    return !is_infinite(static_cast<float>(*result)) || std::isinf(whole);
  }
}

ARROWDL_END_NAMESPACE
