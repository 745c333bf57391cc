// Gathers the type ids and offsets of dense unions.
#pragma once

#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends type ids and offsets to the buffers of `parts`. Returns the rows of each child; those
/// that a range refers to are one span. Raises ValueError for malformed ids and offsets,
/// BufferError if int32 offsets cannot count the rows of a child.
std::vector<ChildRows> gather_dense_unions(const Selection& selection, ArrayParts* parts);

ARROWDL_END_NAMESPACE
