// Extension types that change how a tensor is read.
#pragma once

#include "arrowdl/schema.hpp"
#include "schema/schema_path.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Reads the extension name and metadata of the node at `path` into `type`, which has its layout,
/// children and dictionary. Raises ValueError for storage that contradicts the name.
void parse_extension(Type& type, const SchemaPath& path);

ARROWDL_END_NAMESPACE
