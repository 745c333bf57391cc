// Makes lists of values and offsets, checks the offsets, and splits lists again.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Raises TypeError unless `offsets` are int32 or int64, ValueError if they are empty, have nulls,
/// descend or leave the range from 0 to `value_count`, BufferError unless the host can read them.
void check_list_offsets(const DeviceArray& offsets, int64_t value_count);

/// Calls `visit` with a zero of the type of `offsets`, which check_list_offsets has checked.
template <typename Visitor>
auto visit_list_offsets(const DeviceArray& offsets, const Visitor& visit) {
  return offsets.type().byte_width == sizeof(int64_t) ? visit(int64_t{}) : visit(int32_t{});
}

ARROWDL_END_NAMESPACE
