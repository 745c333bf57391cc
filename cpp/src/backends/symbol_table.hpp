// Tables of the functions of a driver's library: their types, and their names in the library.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrowdl/backend.hpp"
#include "arrowdl/error.hpp"
#include "backends/dynamic_library.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A function of the driver and its name in the library.
struct AnyCall {
  const char* name = nullptr;
  LibraryFunction function = nullptr;
};

/// A function that takes `Args` and returns `Result`. The drivers' types are declared as the
/// calling convention passes them: handles and device addresses as pointers, enumerations as ints.
template <typename Result, typename... Args>
struct Function : AnyCall {
  Result operator()(Args... args) const noexcept {
    return reinterpret_cast<Result (*)(Args...)>(function)(args...);
  }
};

/// One that returns a status.
template <typename... Args>
using Call = Function<int, Args...>;

/// A row of a driver's symbol table: which slot of `Calls` the library's `name` fills.
template <typename Calls>
struct Symbol {
  const char* name;
  AnyCall& (*slot)(Calls& calls);
  bool is_optional = false;
};

template <typename Calls, auto Member>
AnyCall& find_slot(Calls& calls) {
  return calls.*Member;
}

/// Fills `calls`. The name of a symbol that is missing and not optional, or nullptr.
template <typename Calls, std::size_t kCount>
const char* find_missing(const DynamicLibrary& library, const Symbol<Calls> (&symbols)[kCount],
                         Calls& calls) noexcept {
  for (const Symbol<Calls>& symbol : symbols) {
    AnyCall& call = symbol.slot(calls);
    call.name = symbol.name;
    call.function = library.find(symbol.name);
    if (call.function == nullptr && !symbol.is_optional) return symbol.name;
  }
  return nullptr;
}

/// Texts about a library that is missing or too old.
struct LibraryText {
  const char* library;    ///< its display name: "NVIDIA's driver"
  const char* too_old;    ///< what to do about a missing symbol
  const char* to_get_it;  ///< what to do about a missing library
};

/// `library` as a `Runtime`, whose constructor takes the library's name and the `Calls` of
/// `symbols`. nullptr, with the reason in `*why_not`, if that fails: only the library stays
/// loaded then, and a later call may try again.
template <typename Runtime, typename Text, typename Calls, std::size_t kCount>
Backend* start_runtime(DynamicLibrary library, const Text& text,
                       const Symbol<Calls> (&symbols)[kCount], std::string* why_not) {
  Calls calls;
  if (const char* missing = find_missing(library, symbols, calls)) {
    *why_not = concat(library.name(), " has no ", missing, ": ", text.too_old);
    return nullptr;
  }
  auto runtime = std::make_unique<Runtime>(library.name(), calls);
  library.keep();  // a driver that has been called may have threads: it is never unloaded
  *why_not = runtime->start();
  return why_not->empty() ? runtime.release() : nullptr;
}

/// The same for the first of `names` that can be loaded. `Text` has the members of a LibraryText.
template <typename Runtime, typename Text, typename Calls, std::size_t kCount>
Backend* open_runtime(const Text& text, const std::vector<const char*>& names,
                      const Symbol<Calls> (&symbols)[kCount], std::string* why_not) {
  DynamicLibrary library = DynamicLibrary::open(names);
  if (!library) {
    *why_not = concat(text.library, " is not installed (looked for");
    for (const char* name : names) *why_not += concat(' ', name);
    *why_not += concat("): ", text.to_get_it);
    return nullptr;
  }
  return start_runtime<Runtime>(std::move(library), text, symbols, why_not);
}

ARROWDL_END_NAMESPACE
