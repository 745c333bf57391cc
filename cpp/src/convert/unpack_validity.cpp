// Unpacks the validity of an array into bytes.
#include <cstring>

#include "array/host_access.hpp"
#include "convert/array_as_tensor.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE

void unpack_validity(const ArrayAsTensor& reading, uint8_t* target) {
  const int64_t size = reading.view.size();
  if (size == 0) return;
  require_host_readable(reading.levels.front(), "read the nulls of an array");
  const DeviceArray& leaf = reading.leaf();
  if (reading.levels.size() == 1 && leaf.validity() != nullptr && leaf.length() == size) {
    return unpack_bits(leaf.validity(), leaf.offset(), size, target);
  }
  std::memset(target, 1, static_cast<std::size_t>(size));
  for (const DeviceArray& level : reading.levels) {
    if (level.validity() == nullptr) continue;
    const int64_t repeat = size / level.length();
    for_each_unset_bit(level.validity(), level.offset(), level.length(), [&](int64_t row) {
      std::memset(target + row * repeat, 0, static_cast<std::size_t>(repeat));
    });
  }
}

ARROWDL_END_NAMESPACE
