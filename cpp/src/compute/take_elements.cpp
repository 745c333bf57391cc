// Takes elements of a fixed width, in any order.
#include "compute/take_elements.hpp"

#include <cstring>

#include "compute/allocate_elements.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Copies elements of `kBytes` to twice as many bytes in two parts, which may overlap.
template <std::size_t kBytes>
struct TwoParts {
  int64_t width;

  void operator()(uint8_t* to, const uint8_t* from) const noexcept {
    const int64_t second = width - static_cast<int64_t>(kBytes);
    std::memcpy(to, from, kBytes);
    std::memcpy(to + second, from + second, kBytes);
  }
};

template <typename Copy>
void take_each(const uint8_t* const* first, RowIndices indices, int64_t width, uint8_t* target,
               const Copy& copy) {
  for (int64_t i = 0; i < indices.count; ++i) {
    const RowIndex index = indices.begin[i];
    copy(target + i * width, first[index.source] + index.row * width);
  }
}

/// As `take_each` for elements that are no numbers.
void take_wide(const uint8_t* const* first, RowIndices indices, int64_t width, uint8_t* target) {
  const auto take = [&](const auto& copy) { take_each(first, indices, width, target, copy); };
  if (width <= 4) return take(TwoParts<2>{width});
  if (width <= 8) return take(TwoParts<4>{width});
  if (width <= 16) return take(TwoParts<8>{width});
  if (width <= 32) return take(TwoParts<16>{width});
  if (width <= 64) return take(TwoParts<32>{width});
  take([width](uint8_t* to, const uint8_t* from) noexcept {
    std::memcpy(to, from, static_cast<std::size_t>(width));
  });
}

}  // namespace

Buffer take_elements(const std::vector<const uint8_t*>& first, RowIndices indices, int64_t width) {
  uint8_t* target = nullptr;
  Buffer taken = allocate_elements(indices.count, width, &target);
  if (taken.size() == 0) return taken;
  const bool is_number = visit_width(width, [&](auto known_width) {
    constexpr std::size_t kWidth = known_width();
    take_each(first.data(), indices, int64_t{kWidth}, target,
              [](uint8_t* to, const uint8_t* from) noexcept { std::memcpy(to, from, kWidth); });
  });
  if (!is_number) take_wide(first.data(), indices, width, target);
  return taken;
}

ARROWDL_END_NAMESPACE
