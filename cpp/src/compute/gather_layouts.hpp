// Gathers the rows of one layout: what `gather` calls for arrays of that.
#pragma once

#include <optional>
#include <vector>

#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the offsets and the bytes to the buffers of `parts`. Raises ValueError for malformed
/// arrays, BufferError if the offsets cannot count the bytes.
void gather_binary(const Selection& selection, ArrayParts* parts);

/// Appends the views, the data buffers, which are shared with the sources, and their sizes to the
/// buffers of `parts`. Raises ValueError for malformed views, BufferError for more data buffers
/// than a view can count.
void gather_binary_views(const Selection& selection, ArrayParts* parts);

/// Appends the offsets, and the sizes of views, to the buffers of `parts`. Returns the rows of the
/// child. Views keep their order, gaps and overlaps. Raises ValueError for malformed offsets,
/// BufferError if the offsets cannot count the values.
ChildRows gather_lists(const Selection& selection, ArrayParts* parts);

/// Appends the run ends to the children of `parts`. Returns the rows of the values. Raises
/// ValueError for malformed run ends, BufferError if the type of the run ends cannot count the
/// rows.
ChildRows gather_runs(const Selection& selection, ArrayParts* parts);

/// Appends type ids and offsets to the buffers of `parts`. Returns the rows of each child; those
/// that a range refers to are one span. Raises ValueError for malformed ids and offsets,
/// BufferError if int32 offsets cannot count the rows of a child.
std::vector<ChildRows> gather_dense_unions(const Selection& selection, ArrayParts* parts);

/// Appends the indices to the buffers of `parts`. Where all dictionaries are equal, `parts` gets
/// one of them; else returns the rows of the dictionaries that make the unified one. Raises
/// ValueError for an index that leaves its dictionary, BufferError if the indices cannot count the
/// distinct values or an order of the values would be lost.
std::optional<ChildRows> gather_indices(const Selection& selection, ArrayParts* parts);

ARROWDL_END_NAMESPACE
