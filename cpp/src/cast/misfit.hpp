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

template <typename... Parts>
[[noreturn]] void raise_misfit(const Parts&... parts) {
  throw Misfit(concat(parts...));
}

ARROWDL_END_NAMESPACE
