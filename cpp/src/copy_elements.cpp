#include <cstring>

#include "bits.hpp"
#include "host_access.hpp"
#include "null_substitute.hpp"
#include "tensor_reading.hpp"

namespace arrowdl {
namespace {

void copy_all(const TensorReading& reading, uint8_t* target) {
  const DeviceArray& leaf = reading.leaf();
  const TensorView& view = reading.view;
  if (reading.is_bits) {
    unpack_bits(leaf.buffer_as<uint8_t>(1), leaf.offset(), view.size(), target);
  } else if (view.dtype->code == kDLBool) {
    canonicalize_bools(view.data, view.size(), target);
  } else {
    std::memcpy(target, view.data, static_cast<std::size_t>(view.nbytes()));
  }
}

template <std::size_t kItemsize>
void substitute_items(const TensorReading& reading, const Item& item, uint8_t* target) {
  for (const DeviceArray& level : reading.levels) {
    if (level.validity() == nullptr) continue;
    const auto row_bytes = static_cast<int64_t>(kItemsize) * (reading.view.size() / level.length());
    for_each_unset_bit(level.validity(), level.offset(), level.length(), [&](int64_t row) {
      uint8_t* end = target + (row + 1) * row_bytes;
      for (uint8_t* at = end - row_bytes; at < end; at += kItemsize) {
        std::memcpy(at, item.data(), kItemsize);
      }
    });
  }
}

void substitute_nulls(const TensorReading& reading, const Item& item, uint8_t* target) {
  switch (reading.view.dtype->itemsize()) {
    case 1:
      return substitute_items<1>(reading, item, target);
    case 2:
      return substitute_items<2>(reading, item, target);
    case 4:
      return substitute_items<4>(reading, item, target);
    case 8:
      return substitute_items<8>(reading, item, target);
    default:
      return substitute_items<16>(reading, item, target);
  }
}

}  // namespace

OwnedTensor copy_elements(const TensorReading& reading, Nulls nulls) {
  require_host_readable(reading.levels.front(), "copy an array");
  TensorView view = reading.view;
  uint8_t* target;
  const Buffer data = Buffer::allocate(view.nbytes(), &target);
  if (view.size() > 0) {
    copy_all(reading, target);
    if ((nulls == Nulls::kFill || nulls == Nulls::kNan) && has_nulls(reading)) {
      substitute_nulls(reading, make_substitute(*view.dtype, nulls), target);
    }
  }
  view.data = target;
  view.device = Device{};
  return make_tensor(view, data.owner(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

}  // namespace arrowdl
