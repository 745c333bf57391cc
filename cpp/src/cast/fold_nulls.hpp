#pragma once

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// A struct that has null rows, with those rows null in its fields as well: consumers of streams
/// take the fields for columns, and some do not look at the struct's own bitmap
/// (polars.scan_arrow_c_stream of polars 2.1). Fields of types without a bitmap stay as they are,
/// and so do other arrays and memory that the host cannot read.
DeviceArray fold_nulls(const DeviceArray& array);

}  // namespace arrowdl
