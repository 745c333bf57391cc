// Gathers the offsets of lists and list views.
#pragma once

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the offsets, and the sizes of views, to the buffers of `parts`. Returns the rows of the
/// child. Views keep their order, gaps and overlaps. Raises ValueError for malformed offsets,
/// BufferError if the offsets cannot count the values.
ChildRows gather_lists(const Selection& selection, ArrayParts* parts);

ARROWDL_END_NAMESPACE
