// Encodes values as indices into a dictionary.
#pragma once

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Appends the indices of `to` and makes the dictionary: the distinct `values`, in the order of
/// their first appearance. Raises Misfit if the indices cannot count them.
void encode_dictionary(const DeviceArray& values, const Type& to, ArrayParts* parts);

ARROWDL_END_NAMESPACE
