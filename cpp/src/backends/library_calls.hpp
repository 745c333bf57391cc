// The functions of a driver's library: what they take, and the table that finds them by name.
#pragma once

#include <cstddef>

#include "dynamic_library.hpp"

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

}  // namespace arrowdl
