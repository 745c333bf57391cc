// The C++ types of Arrow's numbers.
#pragma once

#include <cstdint>
#include <cstring>

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

ARROWDL_END_NAMESPACE
