// Makes and copies schemas.
#pragma once

#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A deep copy of `schema`, which must be one that parses. Raises MemoryError.
OwnedSchema copy_schema(const ArrowSchema& schema);

/// Replaces the one child of `schema`; the name and the flags stay.
void replace_child(OwnedSchema& schema, OwnedSchema child);

ARROWDL_END_NAMESPACE
