// Writes a DeviceArray as text and as HTML.
#pragma once

#include <string>

#include "arrowdl/device_array.hpp"

namespace arrowdl::python {

/// One line: type, rows, device, nulls, address, and whether work is pending.
std::string describe(const DeviceArray& array);

/// The same as a small table, for notebooks.
std::string describe_html(const DeviceArray& array);

}  // namespace arrowdl::python
