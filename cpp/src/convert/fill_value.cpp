// The values that replace nulls.
#include "convert/fill_value.hpp"

#include <cstring>

#include "arrowdl/error.hpp"

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

}  // namespace

Item make_fill_value(const Dtype& dtype, Nulls nulls) {
  if (nulls == Nulls::kNan) return make_nan(dtype);
  if (dtype.code == kDLFloat8_e8m0fnu) {
    raise_buffer_error("nulls=\"fill\" puts zeros, and ", dtype.name,
                       " has none: use nulls=\"nan\" or \"mask\"");
  }
  return Item{};
}

}  // namespace arrowdl
