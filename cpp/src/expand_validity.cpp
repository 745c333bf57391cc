#include <algorithm>
#include <cstring>

#include "bits.hpp"
#include "host_access.hpp"
#include "tensor_reading.hpp"

namespace arrowdl {
namespace {

/// target &= the bits of `level`, one for each byte.
void and_rows(const DeviceArray& level, uint8_t* target) {
  constexpr int64_t kBlock = 4096;
  uint8_t unpacked[kBlock];
  for (int64_t start = 0; start < level.length(); start += kBlock) {
    const int64_t count = std::min(kBlock, level.length() - start);
    unpack_bits(level.validity(), level.offset() + start, count, unpacked);
    for (int64_t i = 0; i < count; ++i) target[start + i] &= unpacked[i];
  }
}

/// Zeros under every null row of `level`, each of which lies over `repeat` elements.
void clear_null_rows(const DeviceArray& level, int64_t repeat, uint8_t* target) {
  for (int64_t row = 0; row < level.length(); ++row) {
    if (get_bit(level.validity(), level.offset() + row)) continue;
    std::memset(target + row * repeat, 0, static_cast<std::size_t>(repeat));
  }
}

}  // namespace

void expand_validity(const TensorReading& reading, uint8_t* target) {
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
    if (repeat == 1) {
      and_rows(level, target);
    } else {
      clear_null_rows(level, repeat, target);
    }
  }
}

}  // namespace arrowdl
