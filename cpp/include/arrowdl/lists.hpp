// Makes lists of values and offsets, and splits them again.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A List (LargeList) array of `values` cut at the 1-D int32 (int64) `offsets`; zero-copy. Raises
/// TypeError for other offsets, ValueError for offsets that descend or leave the values and for
/// arrays on different devices, BufferError for memory that the host cannot read.
DeviceArray make_list(const DeviceArray& values, const DeviceArray& offsets);

/// The values and offsets of lists, binary or strings.
struct ListParts {
  DeviceArray values;    ///< only the values of the window's rows; uint8 for binary and string
  DeviceArray offsets;   ///< length + 1 of int32 or int64, the first one 0
  int64_t longest = -1;  ///< values of the longest row, where the host knows it of a device
};

/// The values and offsets of `array`: lists, maps, list views, binary, strings and their views.
/// Zero-copy for layouts with offsets whose window starts at offset 0, else with new offsets; the
/// values of views are copied unless they follow one another. With `empty_nulls` a null row has no
/// values; without it, null rows keep what their offsets enclose. On a device the kernels do it,
/// and the host waits once for the sizes, of windows of one array now and then: it reads the
/// offsets of many rows. Without kernels it splits a copy, and copies the parts back. Raises
/// TypeError for other types, ValueError for malformed offsets, BufferError for memory that the
/// host cannot copy, and for views of binary on a device.
ListParts split_list(const DeviceArray& array, bool empty_nulls = false);

ARROWDL_END_NAMESPACE
