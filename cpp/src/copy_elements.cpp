#include <algorithm>
#include <array>
#include <cstring>

#include "arrowdl/error.hpp"
#include "bits.hpp"
#include "host_access.hpp"
#include "tensor_reading.hpp"

namespace arrowdl {
namespace {

/// A NaN of each floating type, as the bits of one element (of one part, for complex numbers).
/// Sources: IEEE 754; dlpack.h's names are those of ml_dtypes, whose README lists the encodings.
struct NanRow {
  DLDataTypeCode code;
  uint8_t bits;
  uint64_t pattern;
};

constexpr NanRow kNans[] = {
    {kDLFloat, 16, 0x7E00},
    {kDLFloat, 32, 0x7FC00000},
    {kDLFloat, 64, 0x7FF8000000000000},
    {kDLBfloat, 16, 0x7FC0},
    {kDLComplex, 64, 0x7FC00000},
    {kDLComplex, 128, 0x7FF8000000000000},
    {kDLFloat8_e3m4, 8, 0x78},
    {kDLFloat8_e4m3, 8, 0x7C},
    {kDLFloat8_e4m3b11fnuz, 8, 0x80},
    {kDLFloat8_e4m3fn, 8, 0x7F},
    {kDLFloat8_e4m3fnuz, 8, 0x80},
    {kDLFloat8_e5m2, 8, 0x7E},
    {kDLFloat8_e5m2fnuz, 8, 0x80},
    {kDLFloat8_e8m0fnu, 8, 0xFF},
};

/// One element, in the machine's byte order.
using Item = std::array<uint8_t, 16>;

template <typename Part>
void fill_item(uint64_t pattern, Item* item) {
  const auto part = static_cast<Part>(pattern);
  for (std::size_t at = 0; at < item->size(); at += sizeof(Part)) {
    std::memcpy(item->data() + at, &part, sizeof(Part));
  }
}

Item make_nan(const Dtype& dtype) {
  for (const NanRow& row : kNans) {
    if (row.code != dtype.code || row.bits != dtype.bits) continue;
    Item item;
    switch (dtype.code == kDLComplex ? dtype.bits / 2 : dtype.bits) {
      case 8:
        fill_item<uint8_t>(row.pattern, &item);
        break;
      case 16:
        fill_item<uint16_t>(row.pattern, &item);
        break;
      case 32:
        fill_item<uint32_t>(row.pattern, &item);
        break;
      default:
        fill_item<uint64_t>(row.pattern, &item);
    }
    return item;
  }
  raise_buffer_error("nulls=\"nan\" needs a floating point type, this is ", dtype.name,
                     ": cast it first, or use nulls=\"fill\" or \"mask\"");
}

/// What stands in the place of a null. Raises BufferError where the type has no such value.
Item make_substitute(const Dtype& dtype, Nulls nulls) {
  if (nulls == Nulls::kNan) return make_nan(dtype);
  if (dtype.code == kDLFloat8_e8m0fnu) {
    raise_buffer_error("nulls=\"fill\" puts zeros, and ", dtype.name,
                       " has none: use nulls=\"nan\" or \"mask\"");
  }
  return Item{};
}

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
void substitute_items(const uint8_t* valid, int64_t count, const Item& item, uint8_t* target) {
  for (int64_t i = 0; i < count; ++i) {
    if (valid[i] != 0) continue;
    std::memcpy(target + i * static_cast<int64_t>(kItemsize), item.data(), kItemsize);
  }
}

void substitute_nulls(const TensorReading& reading, const Item& item, uint8_t* target) {
  const int64_t size = reading.view.size();
  uint8_t* valid;
  const Buffer mask = Buffer::allocate(size, &valid);
  expand_validity(reading, valid);
  switch (reading.view.dtype->itemsize()) {
    case 1:
      return substitute_items<1>(valid, size, item, target);
    case 2:
      return substitute_items<2>(valid, size, item, target);
    case 4:
      return substitute_items<4>(valid, size, item, target);
    case 8:
      return substitute_items<8>(valid, size, item, target);
    default:
      return substitute_items<16>(valid, size, item, target);
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
