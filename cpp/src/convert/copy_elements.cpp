// Copies the elements of an array into a tensor in host memory.
#include <array>
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

/// The masks of a group of items, by the number that their validity bits make: all bits set for a
/// valid item, none for a null. A group fits a vector register.
template <typename T>
struct MaskTable {
  static constexpr std::size_t kGroup = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
  using Masks = std::array<T, kGroup>;

  constexpr MaskTable() {
    for (std::size_t number = 0; number < masks.size(); ++number) {
      for (std::size_t i = 0; i < kGroup; ++i) {
        masks[number][i] = ((number >> i) & 1) != 0 ? static_cast<T>(~T{0}) : T{0};
      }
    }
  }

  std::array<Masks, std::size_t{1} << kGroup> masks{};
};

template <typename T>
alignas(64) constexpr MaskTable<T> kMaskTable;

/// Copies the items of `source` whose bit, from `offset` on, is set, and `substitute` for the
/// others. Without a branch, since nulls cannot be predicted.
template <typename T>
void blend(const uint8_t* source, const uint8_t* bits, int64_t offset, int64_t count, T substitute,
           uint8_t* target) {
  constexpr std::size_t kGroup = MaskTable<T>::kGroup;
  int64_t start = 0;
  for (; start + 64 <= count; start += 64) {
    uint64_t valid = load_64_bits(bits, offset + start);
    for (std::size_t first = 0; first < 64; first += kGroup, valid >>= kGroup) {
      const auto& masks = kMaskTable<T>.masks[valid & ((1U << kGroup) - 1)];
      T items[kGroup];
      std::memcpy(items, source, sizeof(items));
      for (std::size_t i = 0; i < kGroup; ++i) {
        items[i] = static_cast<T>(substitute ^ ((items[i] ^ substitute) & masks[i]));
      }
      std::memcpy(target, items, sizeof(items));
      source += sizeof(items);
      target += sizeof(items);
    }
  }
  for (; start < count; ++start, source += sizeof(T), target += sizeof(T)) {
    const bool is_valid = get_bit(bits, offset + start);
    std::memcpy(target, is_valid ? source : reinterpret_cast<const uint8_t*>(&substitute),
                sizeof(T));
  }
}

template <typename T>
void blend_items(const DeviceArray& rows, const uint8_t* source, const Item& item,
                 uint8_t* target) {
  T substitute;
  std::memcpy(&substitute, item.data(), sizeof(T));
  blend(source, rows.validity(), rows.offset(), rows.length(), substitute, target);
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

void copy_blended(const ArrayAsTensor& reading, const Item& item, uint8_t* target) {
  const TensorView& view = reading.view;
  visit_width(view.dtype->itemsize(), [&](auto width) {
    if constexpr (width() <= sizeof(uint64_t)) {
      blend_items<Element<width()>>(reading.leaf(), view.data, item, target);
    }
  });
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

OwnedTensor copy_elements(const ArrayAsTensor& reading, Nulls nulls) {
  require_host_readable(reading.levels.front(), "copy an array");
  const TensorView& view = reading.view;
  const bool replaces = nulls == Nulls::kFill || nulls == Nulls::kNan;
  return make_host_tensor(view, [&](uint8_t* target) {
    if (!replaces || !has_nulls(reading)) return copy_all(reading, target);
    const Item item = make_fill_value(*view.dtype, nulls);
    if (can_blend(reading)) return copy_blended(reading, item, target);
    copy_all(reading, target);
    substitute_nulls(reading, item, target);
  });
}

ARROWDL_END_NAMESPACE
