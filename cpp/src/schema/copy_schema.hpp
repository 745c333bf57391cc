// Copies schemas.
#pragma once

#include "arrowdl/owned.hpp"

namespace arrowdl {

/// A deep copy of `schema`, which must be one that parses. Raises MemoryError.
OwnedSchema copy_schema(const ArrowSchema& schema);

}  // namespace arrowdl
