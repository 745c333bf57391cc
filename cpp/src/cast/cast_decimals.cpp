// Converts decimals to integers and floats.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "array/row_access.hpp"
#include "arrowdl/error.hpp"
#include "cast/casts.hpp"
#include "cast/misfit.hpp"
#include "compute/allocate_elements.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The magnitude of a decimal of up to 256 bits and 76 digits, in binary: limbs of 32 bits, the
/// lowest first. Those below kPoint are a fraction, of which a last part may be `rest`.
class Fixed {
 public:
  Fixed(const uint8_t* bytes, int64_t width) : is_negative_((bytes[width - 1] & 0x80) != 0) {
    uint8_t* const whole = reinterpret_cast<uint8_t*>(limbs_.data() + kPoint);
    uint32_t carry = is_negative_ ? 1 : 0;
    for (int64_t i = 0; i < width; ++i) {
      carry += is_negative_ ? uint8_t(~bytes[i]) : bytes[i];
      whole[i] = static_cast<uint8_t>(carry);
      carry >>= 8;
    }
  }

  /// Divides the limbs from `lowest` on by ten. Returns the remainder.
  uint32_t divide(std::size_t lowest = 0) {
    uint64_t part = 0;
    for (std::size_t i = limbs_.size(); i-- > lowest;) {
      part = part << 32 | limbs_[i];
      limbs_[i] = static_cast<uint32_t>(part / 10);
      part %= 10;
    }
    has_rest_ |= part != 0;
    return static_cast<uint32_t>(part);
  }
  void multiply() {
    uint64_t part = 0;
    for (uint32_t& limb : limbs_) {
      part += uint64_t{limb} * 10;
      limb = static_cast<uint32_t>(part);
      part >>= 32;
    }
  }
  void divide_by_power(int64_t scale) {
    for (; scale > 0; --scale) divide();
    for (; scale < 0; ++scale) multiply();
  }

  bool is_negative() const { return is_negative_; }
  bool is_whole() const { return !has_rest_ && is_zero(0, kPoint); }
  bool is_long() const { return !is_zero(kPoint + 2, limbs_.size()); }
  /// The lowest 64 bits of the whole part.
  uint64_t low() const { return uint64_t{limbs_[kPoint + 1]} << 32 | limbs_[kPoint]; }

  /// The nearest double: of the highest 64 bits, whose last one says whether lower ones are set.
  double to_double() const {
    std::size_t top = limbs_.size() - 1;
    while (top > 2 && limbs_[top] == 0) --top;
    uint64_t bits = uint64_t{limbs_[top]} << 32 | limbs_[top - 1];
    uint32_t next = limbs_[top - 2];
    int shift = 0;
    for (; bits != 0 && bits >> 63 == 0; ++shift, next <<= 1) bits = bits << 1 | next >> 31;
    if (next != 0 || has_rest_ || !is_zero(0, top - 2)) bits |= 1;
    const int exponent = (static_cast<int>(top) - 1 - static_cast<int>(kPoint)) * 32 - shift;
    return std::ldexp(static_cast<double>(bits), exponent);
  }

  static constexpr std::size_t kPoint = 10;  // 10^-76 has 67 bits of its 320

 private:
  bool is_zero(std::size_t begin, std::size_t end) const {
    return std::all_of(limbs_.begin() + begin, limbs_.begin() + end,
                       [](uint32_t limb) { return limb == 0; });
  }

  std::array<uint32_t, kPoint + 18> limbs_{};
  bool is_negative_;
  bool has_rest_ = false;
};

double round_decimal(Fixed decimal, int64_t scale) {
  constexpr double kPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10};
  const bool is_short = !decimal.is_long() && decimal.low() >> 53 == 0 && scale >= 0 && scale <= 10;
  if (!is_short) decimal.divide_by_power(scale);
  const double value = is_short ? static_cast<double>(decimal.low()) / kPowers[scale]
                                : decimal.to_double();  // either rounds once
  return decimal.is_negative() ? -value : value;
}

/// Sets `*result` to the bits of the integer, if it is one that `dtype` holds.
bool to_integer(const Fixed& decimal, const Dtype& dtype, uint64_t* result) {
  const bool is_signed = dtype.code == kDLInt;
  uint64_t most = UINT64_MAX >> (64 - dtype.bits + (is_signed ? 1 : 0));
  if (decimal.is_negative()) most = is_signed ? most + 1 : 0;
  if (!decimal.is_whole() || decimal.is_long() || decimal.low() > most) return false;
  *result = decimal.is_negative() ? 0 - decimal.low() : decimal.low();
  return true;
}

std::string show(Fixed decimal, int64_t scale) {
  std::string text;
  for (int64_t digits = 0; digits <= scale || decimal.is_long() || decimal.low() != 0; ++digits) {
    if (digits == scale && scale > 0) text += '.';
    text += static_cast<char>('0' + decimal.divide(Fixed::kPoint));
  }
  if (decimal.is_negative()) text += '-';
  std::reverse(text.begin(), text.end());
  return text.append(static_cast<std::size_t>(std::max<int64_t>(-scale, 0)), '0');
}

/// Raises ValueError for more digits before or behind the point than Fixed has bits for.
int64_t read_scale(const Type& type) {
  constexpr int64_t kMost = 76;
  const std::string_view format(type.schema->format);  // "d:38,0" or "d:38,0,256"
  int64_t scale = 0;
  const char* const end = format.data() + format.size();
  std::from_chars(format.data() + format.find(',') + 1, end, scale);
  if (scale >= -kMost && scale <= kMost) return scale;
  raise_value_error("dtype= is for decimals with a scale of -", kMost, " to ", kMost, ", not ",
                    to_string(type), ": cast it to another decimal first");
}

}  // namespace

bool is_decimal(const Type& type) {
  return type.layout == Layout::kFixedWidth && type.dictionary == nullptr &&
         type.schema->format[0] == 'd';
}

DeviceArray read_decimals(const DeviceArray& array, const Dtype& dtype,
                          const std::function<bool(int64_t)>& is_read) {
  const int64_t scale = read_scale(array.type());
  const int64_t width = array.type().byte_width;
  const uint8_t* const first = array.buffer_as<uint8_t>(1);
  const RowValidity is_valid(array);
  uint64_t* target = nullptr;
  Buffer values = allocate_elements(array.length(), &target);
  for (int64_t i = 0; i < array.length(); ++i) {
    target[i] = 0;
    if (!is_valid[i]) continue;
    const Fixed decimal(first + (array.offset() + i) * width, width);
    if (dtype.is_floating()) {
      const double value = round_decimal(decimal, scale);
      std::memcpy(target + i, &value, sizeof(value));
      continue;
    }
    Fixed scaled = decimal;
    scaled.divide_by_power(scale);
    if (to_integer(scaled, dtype, target + i) || !is_read(i)) continue;
    throw UnfitValue(i, show(decimal, scale),
                     concat(scaled.is_whole() ? " is beyond the range of "
                                              : " is not a whole number, and dtype= is ",
                            dtype.name),
                     {"dtype", "", "choose a dtype that holds it, or change the value first"});
  }
  const bool is_signed = dtype.code == kDLInt;
  const char* const name = dtype.is_floating() ? "float64" : is_signed ? "int64" : "uint64";
  return DeviceArray::make_primitive(*find_dtype(name), array.length(), std::move(values), {});
}

ARROWDL_END_NAMESPACE
