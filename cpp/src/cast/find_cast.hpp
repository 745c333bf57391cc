// Finds the cast from one node of a type to another one.
#pragma once

#include <cstdint>
#include <string>

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// How one node becomes one of another type, apart from its children.
enum class Cast : uint8_t {
  kIncompatible,  ///< different data, or the same data, but not converted
  kSame,          ///< the same buffers
  kStruct,        ///< the same fields, maybe in another order
  kNulls,         ///< the null type as any type
  kNumbers,       ///< integers and floats as another type, if it holds the values
  kBools,         ///< bools as numbers, 0 and 1
  kUnits,         ///< times, durations and dates in other units
  kPackBits,      ///< bool8 to bits
  kUnpackBits,    ///< bits to bool8
  kBinary,        ///< other offsets, or views
  kList,          ///< other offsets or sizes, or a fixed size
  kReshape,       ///< a fixed_shape_tensor as nested lists, or the reverse
  kIndices,       ///< other indices into a dictionary, if they count its values
  kDecode,        ///< the values of a dictionary instead of indices
  kEncode,        ///< indices into a dictionary instead of values
  kRuns,          ///< other run ends
  kDecodeRuns,    ///< rows instead of runs
};

struct FoundCast {
  Cast cast = Cast::kIncompatible;
  std::string why_not = {};  ///< of kIncompatible, if the types do not say it
};

/// The cast from a node of `from` to one of `to`.
FoundCast find_cast(const Type& from, const Type& to);

ARROWDL_END_NAMESPACE
