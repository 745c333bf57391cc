// An error in parts: where it is, its reason, and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

/// What to do about an error.
struct Hint {
  std::string option = {};  ///< the argument that `text` gives a value, if it is of one: "nulls"
  std::string verb = {};    ///< what the message has before `text`: "use "
  std::string text = {};    ///< "nulls=\"fill\" or \"mask\""
};

/// An error whose parts bindings hand on.
class ExplainedError : public Error {
 public:
  /// `place` names the fields that it is in; `row` is -1 if it is of no row.
  ExplainedError(ErrorKind kind, std::string reason, Hint hint = {}, int64_t row = -1,
                 std::string place = {}, std::optional<std::string> column = std::nullopt)
      : Error(kind, concat(place, show_row(row), reason, hint.text.empty() ? "" : ": ", hint.verb,
                           hint.text)),
        reason_(std::move(reason)),
        hint_(std::move(hint)),
        row_(row),
        place_(std::move(place)),
        column_(std::move(column)) {}

  /// The outermost field that it is about, whose name may be empty.
  const std::optional<std::string>& column() const noexcept { return column_; }
  /// The row of the array that it is about; -1 if there is none.
  int64_t row() const noexcept { return row_; }
  const Hint& hint() const noexcept { return hint_; }
  /// The message without the hint.
  std::string reason() const { return concat(place_, show_row(row_), reason_); }

  /// The same of row `row` of an array around it.
  ExplainedError at_row(int64_t row) const {
    return ExplainedError(kind(), reason_, hint_, row, place_, column_);
  }
  /// The same of the field `name` of a struct, which `shown` names in messages.
  ExplainedError in_field(const std::string& shown, const std::string& name) const {
    return ExplainedError(kind(), reason_, hint_, row_, concat(shown, ": ", place_), name);
  }

 private:
  static std::string show_row(int64_t row) { return row < 0 ? "" : concat("row ", row, ": "); }

  std::string reason_;
  Hint hint_;
  int64_t row_;
  std::string place_;
  std::optional<std::string> column_;
};

/// `error`, of the field `name` of a struct, which `shown` names in messages.
inline ExplainedError name_field(const Error& error, const std::string& name,
                                 const std::string& shown) {
  const auto* parts = dynamic_cast<const ExplainedError*>(&error);
  return parts == nullptr ? ExplainedError(error.kind(), error.what()).in_field(shown, name)
                          : parts->in_field(shown, name);
}

inline ExplainedError name_field(const Error& error, const std::string& name) {
  return name_field(error, name, concat("field \"", name, "\""));
}

/// Raises BufferError about nulls, which `hint` says how to convert: `nulls="fill"`.
template <typename... Parts>
[[noreturn]] void raise_nulls_error(const char* hint, const Parts&... parts) {
  throw ExplainedError(ErrorKind::kBuffer, concat(parts...), {"nulls", "use ", hint});
}

ARROWDL_END_NAMESPACE
