// The rows of a struct in another mapping of the same memory.
#pragma once

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// The rows of `array`, a struct without nulls in host memory, for consumers that write to them:
/// the elements of its fields that lie in the bytes from `from` on lie at the same place of
/// `block`, an array of these bytes elsewhere (a private mapping of the same file, say), which the
/// result keeps. Only what tensors share is taken from there; fields that have such elements
/// anywhere else are copied. Raises TypeError for other arrays.
DeviceArray relocate(const DeviceArray& array, const void* from, const DeviceArray& block);

}  // namespace arrowdl
