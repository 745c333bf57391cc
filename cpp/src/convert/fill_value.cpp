// The values that replace nulls.
#include "convert/fill_value.hpp"

#include <cstring>

#include "arrowdl/error.hpp"
#include "util/blend_items.hpp"
#include "util/explained_error.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename Part>
void fill_item(uint64_t pattern, Item* item) {
  const auto part = static_cast<Part>(pattern);
  for (std::size_t at = 0; at < item->size(); at += sizeof(Part)) {
    std::memcpy(item->data() + at, &part, sizeof(Part));
  }
}

Item make_nan(const Dtype& dtype) {
  if (!dtype.is_floating()) {
    raise_nulls_error("nulls=\"fill\" or \"mask\", or cast it first",
                      "nulls=\"nan\" needs a floating point type, this is ", dtype.name);
  }
  Item item;
  switch (dtype.code == kDLComplex ? dtype.bits / 2 : dtype.bits) {
    case 8:
      fill_item<uint8_t>(dtype.nan, &item);
      break;
    case 16:
      fill_item<uint16_t>(dtype.nan, &item);
      break;
    case 32:
      fill_item<uint32_t>(dtype.nan, &item);
      break;
    default:
      fill_item<uint64_t>(dtype.nan, &item);
  }
  return item;
}

}  // namespace

Item make_fill_value(const Dtype& dtype, Nulls nulls) {
  if (nulls == Nulls::kNan) return make_nan(dtype);
  if (dtype.code == kDLFloat8_e8m0fnu) {
    raise_nulls_error("nulls=\"nan\" or \"mask\"", "nulls=\"fill\" writes zeros, and ", dtype.name,
                      " has none");
  }
  return Item{};
}

void copy_without_nulls(const DeviceArray& rows, int64_t width, const uint8_t* source,
                        const Item& item, uint8_t* target) {
  visit_width(width, [&](auto bytes) {
    if constexpr (bytes() <= sizeof(uint64_t)) {
      Element<bytes()> substitute;
      std::memcpy(&substitute, item.data(), bytes());
      blend_items(source, rows.validity(), rows.offset(), rows.length(), substitute, target);
    }
  });
}

ARROWDL_END_NAMESPACE
