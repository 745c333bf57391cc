// How a conversion to tensors treats nulls.
#pragma once

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// How a conversion treats nulls.
enum class Nulls {
  kRaise,  ///< BufferError if there is a null, at any level
  kFill,   ///< zero (False) in their place: a copy if there may be nulls
  kNan,    ///< NaN in their place for floating types, BufferError for others
  kKeep,   ///< the bytes in memory, for callers that return the mask as well
};

ARROWDL_END_NAMESPACE
