#pragma once

#include "arrowdl/owned.hpp"

namespace arrowdl {

/// A copy of `schema`, which has been parsed, that keeps nothing of it alive.
OwnedSchema copy_schema(const ArrowSchema& schema);

}  // namespace arrowdl
