// The errors for values that do not fit a requested type, or a dtype.
#pragma once

#include <string>
#include <utility>

#include "arrowdl/error.hpp"
#include "util/explained_error.hpp"

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

/// A value that a dtype cannot hold, with the row of the array that was cast.
class UnfitValue : public ExplainedError {
 public:
  UnfitValue(int64_t row, std::string value, const std::string& reason, Hint hint)
      : ExplainedError(ErrorKind::kValue, value + reason, std::move(hint), row),
        value_(std::move(value)) {}
  /// The value, as text.
  const std::string& value() const noexcept { return value_; }

 private:
  std::string value_;
};

ARROWDL_END_NAMESPACE
