// Dispatches on an Arrow integer format to its C++ type.
#pragma once

#include <cstdint>

#include "arrowdl/error.hpp"

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

ARROWDL_END_NAMESPACE
