// Finds out what it takes to cast one type to another one.
#pragma once

#include <cstdint>

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

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
