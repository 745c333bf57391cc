// Compares arrays by their memory.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Whether two arrays of one type have the same rows of the same buffers. Reads no memory.
bool is_same_memory(const DeviceArray& a, const DeviceArray& b);

/// Whether arrays of one type have the same dictionaries in memory, those of children included.
bool share_dictionaries(const std::vector<DeviceArray>& arrays);

ARROWDL_END_NAMESPACE
