// int64 arithmetic with overflow checks.
#pragma once

#include <cstdint>
#include <limits>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Sets `*result` to a * b; false, with `*result` unspecified, when that does not fit.
inline bool checked_multiply(int64_t a, int64_t b, int64_t* result) noexcept {
#if defined(__GNUC__)
  return !__builtin_mul_overflow(a, b, result);
#else
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  if (a != 0 && b != 0) {
    if (a > 0 ? (b > 0 ? a > kMax / b : b < kMin / a) : (b > 0 ? a < kMin / b : b < kMax / a)) {
      return false;
    }
  }
  *result = a * b;
  return true;
#endif
}

/// Sets `*result` to a + b; false, with `*result` unspecified, when that does not fit.
inline bool checked_add(int64_t a, int64_t b, int64_t* result) noexcept {
#if defined(__GNUC__)
  return !__builtin_add_overflow(a, b, result);
#else
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  if (b > 0 ? a > kMax - b : a < kMin - b) return false;
  *result = a + b;
  return true;
#endif
}

ARROWDL_END_NAMESPACE
