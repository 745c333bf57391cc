// Copies the elements of an array into a tensor in host memory, and unpacks its validity.
#include <cstring>

#include "array/host_access.hpp"
#include "convert/array_as_tensor.hpp"
#include "convert/fill_value.hpp"
#include "convert/host_tensor.hpp"
#include "util/bit_util.hpp"
#include "util/copy_bytes.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

void copy_all(const ArrayAsTensor& reading, uint8_t* target) {
  const DeviceArray& leaf = reading.leaf();
  const TensorView& view = reading.view;
  if (reading.is_bits) {
    unpack_bits(leaf.buffer_as<uint8_t>(1), leaf.offset(), view.size(), target);
  } else if (view.dtype->code == kDLBool) {
    canonicalize_bools(view.data, view.size(), target);
  } else {
    copy_bytes(target, view.data, view.nbytes());
  }
}

/// Whether each item has a validity bit of its own, no other level has nulls, and items are copied
/// unchanged.
bool can_blend(const ArrayAsTensor& reading) {
  const DeviceArray& leaf = reading.leaf();
  const TensorView& view = reading.view;
  for (const DeviceArray& level : reading.levels) {
    if (&level != &leaf && level.has_nulls()) return false;
  }
  return view.dtype->code != kDLBool && view.dtype->itemsize() <= 8 && leaf.length() == view.size();
}

template <std::size_t kItemsize>
void substitute_items(const ArrayAsTensor& reading, const Item& item, uint8_t* target) {
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

void substitute_nulls(const ArrayAsTensor& reading, const Item& item, uint8_t* target) {
  visit_width(reading.view.dtype->itemsize(),
              [&](auto width) { substitute_items<width()>(reading, item, target); });
}

}  // namespace

OwnedTensor copy_elements(const ArrayAsTensor& reading, const Nulls& nulls) {
  require_host_readable(reading.levels.front(), "copy an array");
  const TensorView& view = reading.view;
  return make_host_tensor(view, [&](uint8_t* target) {
    if (!nulls.replaces() || !has_nulls(reading)) return copy_all(reading, target);
    const Item item = make_fill_value(*view.dtype, nulls);
    if (can_blend(reading)) {
      return copy_without_nulls(reading.leaf(), view.dtype->itemsize(), view.data, item, target);
    }
    copy_all(reading, target);
    substitute_nulls(reading, item, target);
  });
}

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
