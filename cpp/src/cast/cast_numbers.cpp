// Casts numbers to wider types.
#include "cast/cast_numbers.hpp"

#include <limits>
#include <type_traits>

#include "array/row_access.hpp"
#include "cast/number_types.hpp"
#include "compute/allocate_elements.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename To, typename From>
To convert(From value) noexcept {
  if constexpr (std::is_class_v<From>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

/// Whether a To holds every From exactly.
template <typename From, typename To>
constexpr bool is_exact() {
  using Own = std::numeric_limits<From>;
  using Wanted = std::numeric_limits<To>;
  if constexpr (std::is_class_v<From>) {
    return std::is_floating_point_v<To>;
  } else if constexpr (std::is_floating_point_v<From> == std::is_floating_point_v<To>) {
    return Wanted::digits >= Own::digits && Wanted::is_signed >= Own::is_signed;
  } else {
    return std::is_floating_point_v<To> && Wanted::digits >= Own::digits;
  }
}

/// The elements of `array`, converted.
template <typename From, typename To>
Buffer convert_elements(const DeviceArray& array) {
  To* target = nullptr;
  Buffer buffer = allocate_elements(array.length(), &target);
  const ElementReader<From> elements(array, 1);
  for (int64_t i = 0; i < array.length(); ++i) target[i] = convert<To>(elements[i]);
  return buffer;
}

}  // namespace

void cast_numbers(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  visit_number(*array.type().dtype, [&](auto from) {
    visit_number(*to.dtype, [&](auto wanted) {
      using From = decltype(from);
      using To = decltype(wanted);
      if constexpr (is_exact<From, To>()) {
        parts->buffers.push_back(convert_elements<From, To>(array));
      }
    });
  });
}

ARROWDL_END_NAMESPACE
