// Decodes run-end encoded arrays.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows of a run-end encoded array as an array of the type of its values, which is decoded as
/// well if it is run-end encoded. New memory, of the host or, if it cannot read the array, of the
/// array's device. Without kernels there, the host decodes a copy. Raises TypeError for other
/// types, ValueError for malformed run ends, BufferError for memory that the host cannot copy.
DeviceArray decode_run_ends(const DeviceArray& array);

ARROWDL_END_NAMESPACE
