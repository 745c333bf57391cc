// How a conversion to tensors treats nulls.
#pragma once

#include <cstdint>
#include <variant>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A number of a caller's. None: an integer that no type holds.
using Number = std::variant<std::monostate, int64_t, uint64_t, double>;

/// How a conversion treats nulls.
struct Nulls {
  enum Kind : uint8_t {
    kRaise,  ///< BufferError if there is a null, at any level
    kFill,   ///< zero (False) in their place: a copy if there may be nulls
    kNan,    ///< NaN in their place for floating types, BufferError for others
    kValue,  ///< `value` in their place, ValueError for types that do not hold it
    kKeep,   ///< the bytes in memory, for callers that return the mask as well
  };

  Nulls(Kind policy = kRaise) noexcept : kind(policy) {}  // NOLINT: each policy is a Nulls
  explicit Nulls(const Number& number) noexcept : kind(kValue), value(number) {}

  bool replaces() const noexcept { return kind == kFill || kind == kNan || kind == kValue; }
  friend bool operator==(const Nulls& a, const Nulls& b) {
    return a.kind == b.kind && a.value == b.value;
  }
  friend bool operator!=(const Nulls& a, const Nulls& b) { return !(a == b); }

  Kind kind;
  Number value = {};
};

ARROWDL_END_NAMESPACE
