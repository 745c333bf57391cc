// Makes tensors of lists whose extension says their one shape.
#pragma once

#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// `array` with its shaped lists (`Extension::kShapedLists`), itself and those in the fields of
/// structs, as FixedSizeLists or fixed shape tensors; the same array if it has none. Shares the
/// values, unless rows are null or not one after the other. Raises ValueError if a row has another
/// shape, BufferError for memory that the host cannot read, and for values that Copy::kNever does
/// not let it gather.
DeviceArray shape_lists(const DeviceArray& array, Copy copy);

ARROWDL_END_NAMESPACE
