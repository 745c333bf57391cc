// Casts times, durations and dates to other units.
#include "cast/cast_units.hpp"

#include <limits>

#include "array/row_access.hpp"
#include "cast/misfit.hpp"
#include "compute/allocate_elements.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr int64_t kSecondsPerDay = 86400;

/// How many units of `format` make a day.
int64_t count_per_day(const char* format) {
  if (format[1] == 'd' && format[2] == 'D') return 1;
  switch (format[2]) {
    case 'm':
      return kSecondsPerDay * 1000;
    case 'u':
      return kSecondsPerDay * 1000000;
    case 'n':
      return kSecondsPerDay * 1000000000;
    default:
      return kSecondsPerDay;
  }
}

[[noreturn]] void raise_unit_misfit(const DeviceArray& array, const Type& to, int64_t i,
                                    int64_t value) {
  raise_misfit("row ", i, " of ", to_string(array.type()), " is ", value, ", which ", to_string(to),
               " cannot hold: request finer units, or those of the array");
}

/// The rows in the units of `to`. Values under a null, and those that no row uses and that do not
/// fit, become 0.
template <typename From, typename To>
Buffer convert_units(const DeviceArray& array, const Type& to, const UsedRows& used) {
  const int64_t own = count_per_day(array.type().schema->format);
  const int64_t wanted = count_per_day(to.schema->format);
  To* target = nullptr;
  Buffer buffer = allocate_elements(array.length(), &target);
  const ElementReader<From> elements(array, 1);
  const RowValidity is_valid(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t value = is_valid[i] ? int64_t{elements[i]} : 0;
    int64_t converted = 0;
    bool fits = true;
    if (wanted >= own) {
      fits = checked_multiply(value, wanted / own, &converted);
    } else {
      converted = value / (own / wanted);
      fits = converted * (own / wanted) == value;
    }
    fits = fits && converted >= std::numeric_limits<To>::min() &&
           converted <= std::numeric_limits<To>::max();
    if (!fits && used[i]) raise_unit_misfit(array, to, i, value);
    target[i] = fits ? static_cast<To>(converted) : To{0};
  }
  return buffer;
}

}  // namespace

void cast_units(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts) {
  const bool is_long = array.type().byte_width == 8;
  Buffer units = to.byte_width == 8 ? is_long ? convert_units<int64_t, int64_t>(array, to, used)
                                              : convert_units<int32_t, int64_t>(array, to, used)
                 : is_long          ? convert_units<int64_t, int32_t>(array, to, used)
                                    : convert_units<int32_t, int32_t>(array, to, used);
  parts->buffers.push_back(std::move(units));
}

ARROWDL_END_NAMESPACE
