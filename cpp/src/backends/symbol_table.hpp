// The functions of a driver's library: what they take, and the table that finds them by name.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "arrowdl/backend.hpp"
#include "arrowdl/error.hpp"
#include "backends/dynamic_library.hpp"

namespace arrowdl {

/// A function of the driver and the name it goes by there.
struct AnyCall {
  const char* name = nullptr;
  LibraryFunction function = nullptr;
};

/// One that takes `Args` and returns a status. The drivers' own types are declared as what they are
/// to the calling convention: handles and device addresses are pointers, enumerations are ints.
template <typename... Args>
struct Call : AnyCall {
  int operator()(Args... args) const noexcept {
    return reinterpret_cast<int (*)(Args...)>(function)(args...);
  }
};

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

/// What people have to know of a library that is missing.
struct LibraryText {
  const char* library;    ///< what it is for people: "NVIDIA's driver"
  const char* too_old;    ///< what to do about a missing symbol
  const char* to_get_it;  ///< what to do about a missing library
};

/// Opens the first of `names` as a `Runtime`, whose constructor takes the library's name and the
/// `Calls` of `symbols`. nullptr and why not in `*why_not` when that fails: nothing is left then
/// but a loaded library, and it can be tried again. `Text` has the words of a LibraryText.
template <typename Runtime, typename Text, typename Calls, std::size_t kCount>
Backend* open_runtime(const Text& text, const std::vector<const char*>& names,
                      const Symbol<Calls> (&symbols)[kCount], std::string* why_not) {
  DynamicLibrary library = DynamicLibrary::open(names);
  if (!library) {
    *why_not = concat(text.library, " is not there (looked for");
    for (const char* name : names) *why_not += concat(' ', name);
    *why_not += concat("): ", text.to_get_it);
    return nullptr;
  }
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

}  // namespace arrowdl
