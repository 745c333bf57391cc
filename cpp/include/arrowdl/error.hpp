// The errors of the core. Python's bindings turn each kind into the built-in exception of that
// name.
#pragma once

#include <exception>
#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The Python exception that an `Error` becomes.
enum class ErrorKind {
  kBuffer,          ///< BufferError: the data is valid but this exchange cannot carry it.
  kValue,           ///< ValueError: the input is malformed, or an argument is invalid.
  kType,            ///< TypeError: the input is of a kind that is not supported at all.
  kIndex,           ///< IndexError: out of range.
  kMemory,          ///< MemoryError: an allocation failed.
  kRuntime,         ///< RuntimeError: a foreign producer reported a failure.
  kNotImplemented,  ///< NotImplementedError: a foreign producer does not implement it.
};

/// An error whose message says what was given, what is supported and what to do.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ErrorKind kind() const noexcept { return kind_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
};

/// An error of the producer of a stream. An export of that stream reports the same code and text.
class ProducerError : public Error {
 public:
  /// `code` is the producer's errno, `reported` its text, which may be empty.
  ProducerError(ErrorKind kind, std::string message, int code, std::string reported)
      : Error(kind, std::move(message)), code_(code), reported_(std::move(reported)) {}
  int code() const noexcept { return code_; }
  const std::string& reported() const noexcept { return reported_; }

 private:
  int code_;
  std::string reported_;
};

namespace detail {
struct TextPart {
  const void* value;
  void (*write)(std::ostream& out, const void* value);
};

template <typename Part>
TextPart make_text_part(const Part& part) noexcept {
  return {&part,
          [](std::ostream& out, const void* value) { out << *static_cast<const Part*>(value); }};
}

/// One function for literals of all lengths: a template instance per length would be hundreds.
void write_literal(std::ostream& out, const void* text);

template <std::size_t kSize>
TextPart make_text_part(const char (&text)[kSize]) noexcept {
  return {text, write_literal};
}

std::string join_text(std::initializer_list<TextPart> parts);
}  // namespace detail

/// Joins values that an ostream can write: `concat("length ", n)`.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  return detail::join_text({detail::make_text_part(parts)...});
}

template <typename... Parts>
[[noreturn]] void raise_buffer_error(const Parts&... parts) {
  throw Error(ErrorKind::kBuffer, concat(parts...));
}

template <typename... Parts>
[[noreturn]] void raise_value_error(const Parts&... parts) {
  throw Error(ErrorKind::kValue, concat(parts...));
}

template <typename... Parts>
[[noreturn]] void raise_type_error(const Parts&... parts) {
  throw Error(ErrorKind::kType, concat(parts...));
}

/// For a failed allocation of `bytes`.
[[noreturn]] inline void raise_memory_error(long long bytes) {
  throw Error(ErrorKind::kMemory, concat("cannot allocate ", bytes, " bytes"));
}

template <typename... Parts>
[[noreturn]] void raise_index_error(const Parts&... parts) {
  throw Error(ErrorKind::kIndex, concat(parts...));
}

ARROWDL_END_NAMESPACE
