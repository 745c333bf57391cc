// The values that replace nulls.
#include "convert/fill_value.hpp"

#include <cmath>
#include <cstring>

#include "arrowdl/error.hpp"
#include "cast/cast_dtype.hpp"
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

/// `number`, of the type named `from`, as `dtype`. An integer has to be exact.
template <typename T>
std::optional<Item> cast_number(const char* from, T number, const Dtype& dtype) {
  uint8_t* bytes = nullptr;
  Buffer buffer = Buffer::allocate(sizeof(number), &bytes);
  std::memcpy(bytes, &number, sizeof(number));
  const Dtype& own = *find_dtype(from);
  const DeviceArray array = DeviceArray::make_primitive(own, 1, std::move(buffer), Device{});
  try {
    const DeviceArray cast = cast_dtype(array, dtype, CastWhich::kNumbers);
    const DeviceArray back = cast_dtype(cast, own, CastWhich::kNumbers);
    const bool is_exact = std::memcmp(back.buffer(1), &number, sizeof(number)) == 0;
    if (std::is_integral_v<T> && !is_exact) return {};
    Item item{};
    std::memcpy(item.data(), cast.buffer(1), static_cast<std::size_t>(dtype.itemsize()));
    return item;
  } catch (const UnfitValue&) {  // says it of a row
    return {};
  }
}

std::string show(const Number& number) {
  return std::visit(
      [](auto value) {
        if constexpr (std::is_same_v<decltype(value), std::monostate>)
          return std::string();
        else
          return concat(value);
      },
      number);
}

}  // namespace

bool is_zero(const Number& number) {
  if (const auto* real = std::get_if<double>(&number)) return *real == 0 && !std::signbit(*real);
  const auto* integer = std::get_if<int64_t>(&number);
  return integer != nullptr && *integer == 0;
}

std::optional<Item> find_item(const Number& number, const Dtype& dtype) {
  if (dtype.code == kDLBool) {
    const auto bit = find_item(number, *find_dtype("uint8"));
    return bit && (*bit)[0] <= 1 ? bit : std::nullopt;
  }
  if (!can_cast_to(dtype)) return {};
  if (const auto* real = std::get_if<double>(&number)) return cast_number("float64", *real, dtype);
  if (const auto* large = std::get_if<uint64_t>(&number)) {
    return cast_number("uint64", *large, dtype);
  }
  const auto* integer = std::get_if<int64_t>(&number);
  return integer == nullptr ? std::nullopt : cast_number("int64", *integer, dtype);
}

Item make_fill_value(const Dtype& dtype, const Nulls& nulls) {
  if (nulls.kind == Nulls::kNan) return make_nan(dtype);
  if (nulls.kind == Nulls::kValue && !is_zero(nulls.value)) {
    if (const auto item = find_item(nulls.value, dtype)) return *item;
    throw ExplainedError(ErrorKind::kValue,
                         concat("nulls=", show(nulls.value), " is not a value of ", dtype.name),
                         {"nulls", "give ", "a value that is, or \"mask\""});
  }
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
