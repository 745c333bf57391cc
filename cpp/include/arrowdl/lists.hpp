// Makes lists of values and offsets, and splits lists into tensors.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl {

/// A List (LargeList) array of `values` cut at the 1-D int32 (int64) `offsets`; zero-copy. Raises
/// TypeError for other offsets, ValueError for offsets that descend or leave the values and for
/// arrays on different devices, BufferError for memory that the host cannot read.
DeviceArray make_list(const DeviceArray& values, const DeviceArray& offsets);

/// The values and offsets of lists, binary or strings.
struct ListParts {
  DeviceArray values;   ///< only the rows that the window refers to; uint8 for binary and string
  DeviceArray offsets;  ///< length + 1 of int32 or int64, the first one 0
};

/// The values and offsets of `array`: lists, maps, list views, binary, strings and their views.
/// Zero-copy for layouts with offsets whose window starts at offset 0, else with new offsets; the
/// values of views are copied unless they follow one another. With `empty_nulls` a null row has no
/// values; without it, null rows keep what their offsets enclose. Raises TypeError for other types,
/// ValueError for malformed offsets, BufferError for memory that the host cannot read.
ListParts split_list(const DeviceArray& array, bool empty_nulls = false);

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
