// Backends of device types for whose events a function of the user waits.
#pragma once

#include <cstdint>
#include <functional>

#include "arrowdl/backend.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The backend around the synchronizer of `device_type`, or nullptr.
Backend* find_synchronizer(int32_t device_type);

/// Sets the synchronizer; an empty one removes it.
void set_synchronizer(int32_t device_type,
                      std::function<void(EventHandle event, int64_t device_id)> synchronizer);

ARROWDL_END_NAMESPACE
