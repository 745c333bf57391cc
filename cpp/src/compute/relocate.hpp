// Moves a struct to another mapping of the same memory.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows of `array`, a struct without nulls in host memory, for consumers that write to them.
/// `block` is an array of the bytes from `from` on in other memory, such as a private mapping of
/// the same file; the result keeps it. Elements that tensors share and that are in these bytes are
/// taken from `block`, at the same offset. A field with such elements in other memory is copied.
/// Raises TypeError for other arrays.
DeviceArray relocate(const DeviceArray& array, const void* from, const DeviceArray& block);

ARROWDL_END_NAMESPACE
