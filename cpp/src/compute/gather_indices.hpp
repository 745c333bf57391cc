// Gathers the indices of dictionary arrays and unifies their dictionaries.
#pragma once

#include <optional>

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the indices to the buffers of `parts`. Where all dictionaries are equal, `parts` gets
/// one of them; else returns the rows of the dictionaries that make the unified one. Raises
/// ValueError for an index that leaves its dictionary, BufferError if the indices cannot count the
/// distinct values or an order of the values would be lost.
std::optional<ChildRows> gather_indices(const Selection& selection, ArrayParts* parts);

ARROWDL_END_NAMESPACE
