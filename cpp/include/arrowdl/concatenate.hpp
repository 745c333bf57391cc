// Concatenates arrays.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows of all `arrays`, one array after the other, in new memory; each buffer is gathered
/// once. A single array, or the only one with rows, is returned as it is. Dictionaries that differ
/// are unified by value. Arrays that the host cannot read are gathered by the kernels of their
/// device; the host waits once for each level of lists, strings and run ends, and for no other
/// type. Without kernels, and for dictionaries that differ, dense unions and views, the host
/// gathers copies, for which it waits, and the result is copied back. Raises ValueError if there is
/// no array or types or devices differ, BufferError for memory that the host cannot copy and for
/// what the type cannot hold, such as int32 offsets that overflow.
DeviceArray concatenate(const std::vector<DeviceArray>& arrays);

ARROWDL_END_NAMESPACE
