// Errors of streams as errno and text, as the C structs report them, and back.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "arrowdl/error.hpp"
#include "util/fork.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The errno of an error that is not a producer's.
int to_errno(ErrorKind kind) noexcept;

/// Raises what a producer reported when it failed to `verb`: `code` is its errno, `reported` its
/// text, which may be empty.
[[noreturn]] void raise_producer_error(const char* verb, int code, std::string reported);

/// Raises `failure`. An error that is not the core's, such as one of Python, can be raised once:
/// replaces it by one that says so.
[[noreturn]] void raise_failure(std::exception_ptr& failure);

/// `code`, and `message` in `*text`; ENOMEM if there is no memory for it.
int report(int code, const char* message, std::string* text) noexcept;

/// Calls `body`. Returns 0, or the errno of what it threw, with the message in `*text`.
template <typename Body>
int run_as_errno(std::string* text, const Body& body) noexcept {
  try {
    text->clear();
    body();
    return 0;
  } catch (const ProducerError& error) {
    return report(error.code(), error.reported().c_str(), text);
  } catch (const Error& error) {
    return report(to_errno(error.kind()), error.what(), text);
  } catch (const std::bad_alloc&) {
    return to_errno(ErrorKind::kMemory);
  } catch (const std::exception& error) {
    return report(to_errno(ErrorKind::kRuntime), error.what(), text);
  }
}

/// Raises RuntimeError unless this process is the one in which `fork_count()` was `process`: the
/// thread that reads the stream, or has it locked, is not in a forked child.
inline void require_own_process(uint64_t process) {
  if (process == fork_count()) return;
  throw Error(ErrorKind::kRuntime,
              "this stream is being read in another process, the one that was forked: make the "
              "stream in the process that reads it");
}

ARROWDL_END_NAMESPACE
