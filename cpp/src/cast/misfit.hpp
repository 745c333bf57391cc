// The error for values that do not fit a requested type.
#pragma once

#include <string>
#include <utility>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Values that do not fit a type which other values of their type fit: a time that is not a whole
/// number of the requested units, lists of different lengths.
class Misfit : public Error {
 public:
  explicit Misfit(std::string message) : Error(ErrorKind::kValue, std::move(message)) {}
};

/// What cannot be told from the values, or matters only to rows under a null: the array keeps its
/// schema, except in a stream, which has announced another one.
class Undecided : public Misfit {
 public:
  using Misfit::Misfit;
};

template <typename... Parts>
[[noreturn]] void raise_undecided(const Parts&... parts) {
  throw Undecided(concat(parts...));
}

template <typename... Parts>
[[noreturn]] void raise_misfit(const Parts&... parts) {
  throw Misfit(concat(parts...));
}

ARROWDL_END_NAMESPACE
