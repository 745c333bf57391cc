// Gathers the run ends of run-end encoded arrays.
#pragma once

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the run ends to the children of `parts`. Returns the rows of the values. Raises
/// ValueError for malformed run ends, BufferError if the type of the run ends cannot count the
/// rows.
ChildRows gather_runs(const Selection& selection, ArrayParts* parts);

ARROWDL_END_NAMESPACE
