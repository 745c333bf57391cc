// Tensors of lists: padded rows, lengths, checked shapes.
#pragma once

#include <cstdint>

#include "arrowdl/lists.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl {

/// The rows of `parts`, padded with zeros at the end to the longest row, or to `width` if that is
/// not negative: shape (rows, width, ...inner), new host memory. Null values become what `nulls`
/// says. Raises ValueError if a row is longer than `width`, and otherwise as `to_dlpack` does.
OwnedTensor pad_list(const ListParts& parts, Nulls nulls, int64_t width = -1);

/// The lengths of the rows: int64, shape (rows,), new host memory.
OwnedTensor list_lengths(const ListParts& parts);

/// Checks the shapes of a variable_shape_tensor, an int32 tensor (rows, ndim) in C order in host
/// memory. Raises ValueError, naming the row, if a shape is negative, does not have as many
/// elements as the row, or contradicts the uniform_shape of `tensor`.
void check_variable_shapes(const ListParts& parts, const OwnedTensor& shapes,
                           const TensorMetadata& tensor);

}  // namespace arrowdl
