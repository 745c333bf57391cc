// Folds the nulls of a struct into its fields.
#pragma once

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A struct with its null rows null in its fields as well: consumers of streams take the fields as
/// columns, and some ignore the bitmap of the struct (polars.scan_arrow_c_stream of polars 2.1).
/// Fields without a bitmap stay as they are, and so do other arrays and memory that the host cannot
/// read.
DeviceArray fold_nulls(const DeviceArray& array);

ARROWDL_END_NAMESPACE
