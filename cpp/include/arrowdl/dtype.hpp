// Element types: one row each, with its DLPack and its Arrow type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "arrowdl/dlpack.hpp"
#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// One row of the dtype table. An element type that Arrow lacks is an extension type over storage
/// of the same bytes.
struct Dtype {
  const char* name;       ///< as torch and numpy spell it: "float32", "bfloat16", "bool"
  DLDataTypeCode code;    ///< DLPack's type code
  uint8_t bits;           ///< of one lane in DLPack
  const char* format;     ///< Arrow format string of the storage: "f", "w:2", "+w:2"
  const char* extension;  ///< Arrow extension name over that storage, or nullptr
  uint64_t nan;           ///< bits of a NaN, of one part for complex numbers; 0: it has none
  uint16_t lanes = 1;     ///< DLPack's lanes
  /// DLPack elements, one after the other in the last dimension, in one element of Arrow: as many
  /// values of less than a byte as make whole bytes, the first one in the lowest bits.
  uint8_t values = 1;

  constexpr int64_t itemsize() const { return (bits * lanes * values + 7) / 8; }
  /// Whether a value of less than a byte has a byte of its own.
  /// Source: dlpack.h, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED.
  constexpr bool is_padded() const { return bits * lanes * values % 8 != 0; }
  constexpr bool is_floating() const {
    return code == kDLFloat || code == kDLBfloat || code == kDLComplex ||
           (code >= kDLFloat8_e3m4 && code <= kDLFloat8_e8m0fnu);
  }
  constexpr DLDataType dl() const { return DLDataType{static_cast<uint8_t>(code), bits, lanes}; }
};

/// The row of a DLPack type; nullptr for unknown codes and vectors. `is_padded` only matters to
/// values of less than a byte: packed unless it is set.
const Dtype* find_dtype(DLDataType type, bool is_padded = false) noexcept;

/// The row named `name`, or nullptr.
const Dtype* find_dtype(std::string_view name) noexcept;

/// The row of the plain Arrow format ("c" to "g"), or nullptr.
const Dtype* find_dtype_of_format(std::string_view format) noexcept;

/// The row of an extension name ("arrow.bool8", "arrowdl.bfloat16"), or nullptr.
const Dtype* find_dtype_of_extension(std::string_view extension) noexcept;

/// All rows.
struct Dtypes {
  const Dtype* begin() const noexcept;
  const Dtype* end() const noexcept;
};

/// "float32"; for a type without a row its DLPack fields, for error messages.
std::string to_string(DLDataType type);

ARROWDL_END_NAMESPACE
