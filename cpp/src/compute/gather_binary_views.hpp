// Gathers the rows of binary and string views.
#pragma once

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the views, the data buffers, which are shared with the sources, and their sizes to the
/// buffers of `parts`. Raises ValueError for malformed views, BufferError for more data buffers
/// than a view can count.
void gather_binary_views(const Selection& selection, ArrayParts* parts);

ARROWDL_END_NAMESPACE
