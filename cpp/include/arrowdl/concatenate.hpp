// Several arrays as one, and run-end encoded ones decoded.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// One array of the rows of all `arrays`, each buffer gathered once. They must agree in type and
/// device; dictionaries that differ are unified by value. One array comes back as it is.
DeviceArray concatenate(const std::vector<DeviceArray>& arrays);

/// The plain array that a run-end encoded one stands for.
DeviceArray decode_run_ends(const DeviceArray& array);

}  // namespace arrowdl
