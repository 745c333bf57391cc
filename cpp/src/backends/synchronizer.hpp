// Device types whose events a function of the user's waits for.
#pragma once

#include "arrowdl/backend.hpp"

namespace arrowdl {

/// The backend around the synchronizer of `device_type`, or nullptr.
Backend* find_synchronizer(int32_t device_type);

/// Sets it, or with an empty one takes it back.
void set_synchronizer(int32_t device_type, Synchronizer synchronizer);

}  // namespace arrowdl
