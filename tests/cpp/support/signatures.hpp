// Compares arrowdl's declaration of a function with that of a vendor's header: the number of
// arguments, and how each is passed.
#pragma once

#include <cstddef>
#include <type_traits>

namespace arrowdl::testing {

/// How the calling convention passes a type: as a pointer or as an integer of some size.
template <typename T>
constexpr std::size_t passed_as() {
  static_assert(std::is_pointer_v<T> || std::is_integral_v<T> || std::is_enum_v<T>);
  return sizeof(T);
}

template <typename... Ours, typename Status, typename... Theirs>
constexpr bool match(int (*)(Ours...), Status (*)(Theirs...)) {
  static_assert(sizeof(Status) == sizeof(int));
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return ((passed_as<Ours>() == passed_as<Theirs>()) && ...);
  }
}

template <typename... Args>
using Ours = int (*)(Args...);

#define EXPECT_MATCH(theirs, ...)                                                     \
  static_assert(arrowdl::testing::match(arrowdl::testing::Ours<__VA_ARGS__>(nullptr), \
                                        decltype (&theirs)(nullptr)),                 \
                #theirs)

}  // namespace arrowdl::testing
