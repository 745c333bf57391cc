// Rows, and fields of structs, in the form that tensors are made of.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Whether rows of `type` are numbers: `plain_rows` returns them as they are.
inline bool has_plain_rows(const Type& type) {
  return type.dictionary == nullptr && type.is_plain();
}

/// Whether run ends are the items of `type`, FixedSizeLists of any depth.
bool has_inner_runs(const Type& type);

/// `array` with the run ends in its FixedSizeLists decoded, and with rows null whose value in the
/// dictionary is null; the same array if it has neither. Dictionaries that the host cannot read
/// stay as they are. Raises ValueError for malformed indices and run ends.
DeviceArray plain_rows(const DeviceArray& array);

/// Field `i` of a struct, as `array.field(i)`. Run ends are decoded first: they have no bitmap for
/// the nulls of the struct. So are those in FixedSizeLists, and null values of dictionaries are
/// null rows. Raises as `DeviceArray::field` and `decode_run_ends` do.
DeviceArray read_field(const DeviceArray& array, int64_t i);

ARROWDL_END_NAMESPACE
