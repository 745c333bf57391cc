// Offsets that stand alone, as an array of their own.
#pragma once

#include <cstdint>

#include "arrowdl/device_array.hpp"

namespace arrowdl {

/// Raises TypeError unless `offsets` are int32 or int64, and ValueError unless there is at least
/// one, none is null, and they ascend from 0 on within `value_count`. Host memory only.
void check_list_offsets(const DeviceArray& offsets, int64_t value_count);

/// Calls `visit` with a zero of the type of `offsets`, which check_list_offsets has seen.
template <typename Visitor>
auto visit_list_offsets(const DeviceArray& offsets, const Visitor& visit) {
  return offsets.type().byte_width == sizeof(int64_t) ? visit(int64_t{}) : visit(int32_t{});
}

}  // namespace arrowdl
