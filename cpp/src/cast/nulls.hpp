// Copies bitmaps, folds them into fields, makes arrays of nulls.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The validity of the rows of `array`, in host memory, from bit 0 on; no buffer if no row is null.
Buffer copy_validity(const DeviceArray& array, int64_t* null_count);

/// A struct with its null rows null in its fields as well: consumers of streams take the fields as
/// columns, and some ignore the bitmap of the struct (polars.scan_arrow_c_stream of polars 2.1).
/// Fields without a bitmap stay as they are, and so do other arrays and memory that the host cannot
/// read.
DeviceArray fold_nulls(const DeviceArray& array);

/// Whether make_nulls supports `type`: not if a child needs values, as the indices into a
/// dictionary do.
bool can_be_null(const Type& type);

/// `length` nulls of `type`. Raises Undecided if it is not supported.
OwnedArray make_nulls(const Type& type, int64_t length);

ARROWDL_END_NAMESPACE
