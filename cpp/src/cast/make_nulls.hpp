// Makes arrays of nulls.
#pragma once

#include <cstdint>

#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Whether make_nulls supports `type`: not if a child needs values, as the indices into a
/// dictionary do.
bool can_be_null(const Type& type);

/// `length` nulls of `type`. Raises Undecided if it is not supported.
OwnedArray make_nulls(const Type& type, int64_t length);

ARROWDL_END_NAMESPACE
