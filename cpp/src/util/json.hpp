// A strict JSON parser for extension metadata, which is untrusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A parsed JSON value.
struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;               ///< a string's content (UTF-8), or a number as written
  std::vector<JsonValue> items;   ///< of an array, or the values of an object
  std::vector<std::string> keys;  ///< of an object, one for each item

  /// The member named `key`, or nullptr.
  const JsonValue* find(std::string_view key) const noexcept;
  /// The number as int64. Raises ValueError for any other kind, for a fraction or an exponent,
  /// and for what does not fit.
  int64_t as_int64() const;
};

/// The name of a kind, for error messages: "an array".
const char* to_string(JsonValue::Kind kind) noexcept;

/// Parses one JSON value and nothing after it (RFC 8259). Raises ValueError for anything else,
/// for text that is not UTF-8, for a key given twice, and for more than 64 levels of nesting.
JsonValue parse_json(std::string_view text);

/// `text` as a JSON string, quotes included.
std::string quote_json(std::string_view text);

ARROWDL_END_NAMESPACE
