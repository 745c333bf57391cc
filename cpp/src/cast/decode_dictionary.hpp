// Decodes dictionary arrays.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "compute/take.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The dictionary index of each row of `array`; 0 for null rows. Raises Undecided for an index that
/// leaves the dictionary of `dictionary_length` values.
std::vector<RowIndex> find_dictionary_rows(const DeviceArray& array, int64_t dictionary_length);

/// The rows of `array`: `rows` of `values`, its dictionary, which is not empty, and null where
/// `array` is. Raises Undecided if `values` cannot be null where `array` is.
OwnedArray decode_dictionary(const DeviceArray& array, const DeviceArray& values,
                             const std::vector<RowIndex>& rows);

ARROWDL_END_NAMESPACE
