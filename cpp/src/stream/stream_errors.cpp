// Maps errors of streams to errno and back.
#include "stream/stream_errors.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

ARROWDL_BEGIN_NAMESPACE
namespace {

ErrorKind kind_of(int code) noexcept {
  switch (code) {
    case ENOSYS:
      return ErrorKind::kNotImplemented;
    case ENOMEM:
      return ErrorKind::kMemory;
    default:
      return ErrorKind::kRuntime;
  }
}

}  // namespace

int to_errno(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kMemory:
      return ENOMEM;
    case ErrorKind::kRuntime:
      return EIO;
    case ErrorKind::kNotImplemented:
      return ENOSYS;
    default:
      return EINVAL;
  }
}

void raise_producer_error(const char* verb, int code, std::string reported) {
  std::string text =
      concat("the Arrow stream's producer failed to ", verb, ": ",
             reported.empty() ? std::strerror(code) : reported, " (errno ", code, ")");
  throw ProducerError(kind_of(code), std::move(text), code, std::move(reported));
}

void raise_failure(std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    failure = std::make_exception_ptr(
        Error(ErrorKind::kRuntime, "the stream has failed: its error was raised before"));
    throw;
  }
}

int report(int code, const char* message, std::string* text) noexcept {
  try {
    *text = message;
    return code;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

ARROWDL_END_NAMESPACE
