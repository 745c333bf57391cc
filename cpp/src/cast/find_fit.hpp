// Finds whether, and how, arrays of one type can be cast to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The permutation of a fixed-shape tensor; empty for C order.
std::vector<int64_t> effective_permutation(const TensorMetadata& tensor);

/// The type of the elements of `lists`, nested fixed-size lists of the sizes `shape`; nullptr for
/// other types.
const Type* find_innermost(const Type& lists, const std::vector<int64_t>& shape);

/// The shape that two types have in common: one is a fixed_shape_tensor in C order of two and more
/// dimensions, the other one nested lists of these sizes. Else nullptr.
const std::vector<int64_t>* find_common_shape(const Type& from, const Type& to);

/// For each field of `to` the index of the field of `from`: by name if all names match, by position
/// if no field has the name of one at another position. Empty if only some match. Both structs
/// have as many fields.
std::vector<std::size_t> match_fields(const Type& from, const Type& to);

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

/// What a cast of a whole type takes, in ascending order.
enum class Fit : uint8_t {
  kSame,       ///< the tree of buffers as it is
  kShared,     ///< the same buffers, in another tree
  kConverted,  ///< new host memory
  kNone,       ///< not on the device: find_fit does not return it
};

/// What the cast from `from` to `to` takes. Raises ValueError, naming the field, if they are
/// incompatible, or not converted.
Fit find_fit(const Type& from, const Type& to);

/// Whether a nullable field is requested as one that is not, at any level.
bool narrows_nullability(const Type& from, const Type& to);

ARROWDL_END_NAMESPACE
