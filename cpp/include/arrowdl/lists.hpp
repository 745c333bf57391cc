// Lists: made of values and offsets, and taken apart into tensors.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_dlpack.hpp"

namespace arrowdl {

/// A list array of `values` cut at the 1-D int32 or int64 tensor `offsets` (List or LargeList).
/// Raises ValueError for offsets that decrease or leave the values.
DeviceArray make_list(const DeviceArray& values, const DeviceArray& offsets);

/// A List or LargeList, binary or string array taken apart.
struct ListParts {
  DeviceArray values;   ///< only the rows that the window refers to; uint8 for binary and string
  DeviceArray offsets;  ///< length + 1 of int32 or int64, the first one 0
};

/// Takes `array` apart: lists, maps, list views, binary, string and their views. Zero-copy for
/// offset layouts whose window starts at 0, else the offsets are written anew; views are gathered.
/// Offsets are checked to ascend within the values (ValueError). With `empty_nulls` a null row has
/// no values, whatever lies under it; without, the caller has dealt with nulls.
ListParts split_list(const DeviceArray& array, bool empty_nulls = false);

/// Rows of `parts` padded at the end with `nulls`' zero to the longest (or `width`, >= 0):
/// shape (rows, width, …inner). Raises ValueError when a row is longer than `width`.
OwnedTensor pad_list(const ListParts& parts, Nulls nulls, int64_t width = -1);

/// Lengths of the rows: int64, shape (rows,).
OwnedTensor list_lengths(const ListParts& parts);

/// Checks the shapes of a variable_shape_tensor, an int32 tensor (rows, ndim) in C order on the
/// host, against its data: each row has as many elements as its shape, and what uniform_shape says.
/// Raises ValueError, naming the row.
void check_variable_shapes(const ListParts& parts, const OwnedTensor& shapes,
                           const TensorMetadata& tensor);

}  // namespace arrowdl
