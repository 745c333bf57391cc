// Tensors of lists: padded rows, lengths, checked shapes.
#pragma once

#include <array>
#include <cstdint>

#include "arrowdl/lists.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// How rows of different lengths are padded to one width.
struct Padding {
  int64_t width = -1;                 ///< of each row; negative: that of the longest row
  int64_t max_length = -1;            ///< values of a row that are kept; negative: all
  int64_t multiple = 1;               ///< the width is rounded up to a multiple of this
  std::array<uint8_t, 16> element{};  ///< the padding, of the dtype of the values: first bytes
};

/// The rows of `parts`, padded at the end: shape (rows, width, ...inner), new memory. Rows longer
/// than `padding.max_length` are cut. Null values become what `nulls` says. On a device with
/// kernels the host waits for the length of the longest row, and the consumer is ordered as `order`
/// says; the offsets are those of `split_list`, and are not checked again. Raises ValueError if a
/// row is longer than `padding.width`, and otherwise as `to_dlpack` does.
OwnedTensor pad_list(const ListParts& parts, const Nulls& nulls, const Padding& padding = {},
                     const Order& order = {});

/// The lengths of the rows, at most `max_length` unless that is negative: int64, shape (rows,), new
/// memory, ordered as that of `pad_list`.
OwnedTensor list_lengths(const ListParts& parts, int64_t max_length = -1, const Order& order = {});

/// Checks the shapes of a variable_shape_tensor, an int32 tensor (rows, ndim) in C order in host
/// memory. Raises ValueError, naming the row, if a shape is negative, does not have as many
/// elements as the row, or contradicts the uniform_shape of `tensor`.
void check_variable_shapes(const ListParts& parts, const OwnedTensor& shapes,
                           const TensorMetadata& tensor);

ARROWDL_END_NAMESPACE
