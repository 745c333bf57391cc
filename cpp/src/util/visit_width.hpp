// Calls a function template with the integer or the element of a width.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "arrowdl/error.hpp"
#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Calls `visit` with a zero of the type of `format`. Raises ValueError for other formats.
template <typename Visitor>
auto visit_integer(const char* format, const Visitor& visit) {
  switch (format[0]) {
    case 'c':
      return visit(int8_t{});
    case 'C':
      return visit(uint8_t{});
    case 's':
      return visit(int16_t{});
    case 'S':
      return visit(uint16_t{});
    case 'i':
      return visit(int32_t{});
    case 'I':
      return visit(uint32_t{});
    case 'l':
      return visit(int64_t{});
    case 'L':
      return visit(uint64_t{});
    default:
      raise_value_error("format \"", format, "\" where an integer is needed");
  }
}

/// A width in bytes, known at compile time.
template <std::size_t kBytes>
using Width = std::integral_constant<std::size_t, kBytes>;

/// The element of `kBytes` bytes: an unsigned integer if one has that size.
template <std::size_t kBytes>
struct ElementOf;
template <>
struct ElementOf<1> {
  using type = uint8_t;
};
template <>
struct ElementOf<2> {
  using type = uint16_t;
};
template <>
struct ElementOf<4> {
  using type = uint32_t;
};
template <>
struct ElementOf<8> {
  using type = uint64_t;
};
template <>
struct ElementOf<16> {
  using type = std::array<uint8_t, 16>;
};
template <std::size_t kBytes>
using Element = typename ElementOf<kBytes>::type;

/// Calls `visit` with the Width of `width` if numbers have it: 1, 2, 4, 8 or 16 bytes. Returns
/// whether they do.
template <typename Visit>
bool visit_width(int64_t width, const Visit& visit) {
  switch (width) {
    case 1:
      visit(Width<1>{});
      return true;
    case 2:
      visit(Width<2>{});
      return true;
    case 4:
      visit(Width<4>{});
      return true;
    case 8:
      visit(Width<8>{});
      return true;
    case 16:
      visit(Width<16>{});
      return true;
    default:
      return false;
  }
}

ARROWDL_END_NAMESPACE
