// Asks other libraries for the device memory that they keep without using it.
#pragma once

#include "arrowdl/device.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Calls the function of `set_free_caches`, if there is one.
void free_caches(const Device& device);

ARROWDL_END_NAMESPACE
