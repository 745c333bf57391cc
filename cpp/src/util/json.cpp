// A recursive-descent JSON parser.
#include "util/json.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr int kMaxNesting = 64;
constexpr std::size_t kMaxQuoted = 60;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(uint32_t code_point, std::string* out) {
  const auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  const auto put_tail = [&](int shift) { put(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put_tail(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put_tail(6);
    put_tail(0);
  } else {
    put(0xF0 | (code_point >> 18));
    put_tail(12);
    put_tail(6);
    put_tail(0);
  }
}

/// Recursive descent over the text; `position_` is the next character.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  JsonValue parse() {
    JsonValue value = parse_value(0);
    skip_space();
    if (position_ != text_.size()) fail("the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    const std::size_t start = position_ > kMaxQuoted / 2 ? position_ - kMaxQuoted / 2 : 0;
    std::string near;  // escaped, since the text may be any bytes
    for (const char c : text_.substr(start, kMaxQuoted)) near += c >= ' ' && c <= '~' ? c : '?';
    raise_value_error("malformed JSON: expected ", expected, " at byte ", position_, ", near '",
                      near, "'");
  }

  bool at_end() const { return position_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[position_]; }

  bool take(char c) {
    if (at_end() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void require(char c, const char* expected) {
    if (!take(c)) fail(expected);
  }

  void skip_space() {
    while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) {
      ++position_;
    }
  }

  JsonValue parse_value(int depth) {
    skip_space();
    if (depth == kMaxNesting && (peek() == '{' || peek() == '[')) {
      fail("at most 64 levels of nesting");
    }
    switch (peek()) {
      case '{':
        return parse_object(depth);
      case '[':
        return parse_array(depth);
      case '"':
        return make(JsonValue::Kind::kString, parse_string());
      case 't':
        return parse_word("true", JsonValue::Kind::kBool, true);
      case 'f':
        return parse_word("false", JsonValue::Kind::kBool, false);
      case 'n':
        return parse_word("null", JsonValue::Kind::kNull, false);
      default:
        return make(JsonValue::Kind::kNumber, parse_number());
    }
  }

  static JsonValue make(JsonValue::Kind kind, std::string text) {
    JsonValue value;
    value.kind = kind;
    value.text = std::move(text);
    return value;
  }

  JsonValue parse_word(std::string_view word, JsonValue::Kind kind, bool boolean) {
    if (text_.substr(position_, word.size()) != word) fail("a value");
    position_ += word.size();
    JsonValue value;
    value.kind = kind;
    value.boolean = boolean;
    return value;
  }

  JsonValue parse_object(int depth) {
    JsonValue value;
    value.kind = JsonValue::Kind::kObject;
    std::set<std::string> seen;
    require('{', "'{'");
    skip_space();
    if (take('}')) return value;
    do {
      skip_space();
      std::string key = parse_string();
      if (!seen.insert(key).second) fail("a key that was not there before");
      skip_space();
      require(':', "':'");
      value.keys.push_back(std::move(key));
      value.items.push_back(parse_value(depth + 1));
      skip_space();
    } while (take(','));
    require('}', "',' or '}'");
    return value;
  }

  JsonValue parse_array(int depth) {
    JsonValue value;
    value.kind = JsonValue::Kind::kArray;
    require('[', "'['");
    skip_space();
    if (take(']')) return value;
    do {
      value.items.push_back(parse_value(depth + 1));
      skip_space();
    } while (take(','));
    require(']', "',' or ']'");
    return value;
  }

  void skip_digits() {
    if (!is_digit(peek())) fail("a value");
    while (is_digit(peek())) ++position_;
  }

  std::string parse_number() {
    const std::size_t start = position_;
    take('-');
    if (!take('0')) skip_digits();
    if (take('.')) skip_digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      skip_digits();
    }
    return std::string(text_.substr(start, position_ - start));
  }

  std::string parse_string() {
    require('"', "a string");
    std::string out;
    while (!take('"')) {
      if (take('\\')) {
        parse_escape(&out);
      } else if (static_cast<unsigned char>(peek()) < 0x20) {
        fail(at_end() ? "'\"'" : "no control character in a string");
      } else {
        parse_character(&out);
      }
    }
    return out;
  }

  void parse_escape(std::string* out) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (take('u')) return append_utf8(parse_escaped_code_point(), out);
    const std::size_t which = at_end() ? kEscapes.npos : kEscapes.find(peek());
    if (which == kEscapes.npos) fail("an escape such as \\n or \\u0041");
    out->push_back(kMeanings[which]);
    ++position_;
  }

  uint32_t parse_escaped_code_point() {
    const uint32_t unit = parse_hex_unit();
    if (unit < 0xD800 || unit > 0xDFFF) return unit;
    if (unit > 0xDBFF || !take('\\') || !take('u')) fail("a pair of UTF-16 surrogates");
    const uint32_t low = parse_hex_unit();
    if (low < 0xDC00 || low > 0xDFFF) fail("a pair of UTF-16 surrogates");
    return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
  }

  uint32_t parse_hex_unit() {
    uint32_t unit = 0;
    if (text_.size() - position_ < 4) fail("four hexadecimal digits");
    const char* first = text_.data() + position_;
    const auto [end, error] = std::from_chars(first, first + 4, unit, 16);
    if (error != std::errc() || end != first + 4) fail("four hexadecimal digits");
    position_ += 4;
    return unit;
  }

  /// One UTF-8 sequence: no overlong form, no surrogate, nothing above U+10FFFF.
  void parse_character(std::string* out) {
    const auto byte = [&](std::size_t i) {
      return position_ + i < text_.size() ? static_cast<unsigned char>(text_[position_ + i]) : 0u;
    };
    const uint32_t lead = byte(0);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4) fail("UTF-8");
    for (std::size_t i = 1; i < length; ++i) {
      if ((byte(i) & 0xC0) != 0x80) fail("UTF-8");
    }
    const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
    const bool beyond = (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
    if (overlong || beyond) fail("UTF-8");
    out->append(text_.substr(position_, length));
    position_ += length;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const noexcept {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

int64_t JsonValue::as_int64() const {
  if (kind != Kind::kNumber) raise_value_error("expected an integer, not ", to_string(kind));
  int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) {
    raise_value_error("expected an integer that fits int64, not ", text.substr(0, kMaxQuoted));
  }
  return value;
}

const char* to_string(JsonValue::Kind kind) noexcept {
  constexpr const char* kNames[] = {"null",     "true or false", "a number",
                                    "a string", "an array",      "an object"};
  return kNames[static_cast<int>(kind)];
}

JsonValue parse_json(std::string_view text) { return Parser(text).parse(); }

std::string quote_json(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 0xF]};
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

ARROWDL_END_NAMESPACE
