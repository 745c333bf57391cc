// Takes elements of a fixed width, in any order.
#include "compute/take_elements.hpp"

#include <cstring>

#include "compute/allocate_elements.hpp"
#include "util/visit_width.hpp"

namespace arrowdl {
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

/// Rows of several sources.
struct Indexed {
  const uint8_t* const* first;
  const RowIndex* indices;

  const uint8_t* find(int64_t i, int64_t width) const noexcept {
    return first[indices[i].source] + indices[i].row * width;
  }
};

/// Rows of one source.
struct Numbered {
  const uint8_t* first;
  const uint32_t* rows;

  const uint8_t* find(int64_t i, int64_t width) const noexcept { return first + rows[i] * width; }
};

template <typename Rows, typename Copy>
void take_each(const Rows& rows, int64_t count, int64_t width, uint8_t* target, const Copy& copy) {
  for (int64_t i = 0; i < count; ++i) copy(target + i * width, rows.find(i, width));
}

/// As `take_each` for elements that are no numbers.
template <typename Rows>
void take_wide(const Rows& rows, int64_t count, int64_t width, uint8_t* target) {
  const auto take = [&](const auto& copy) { take_each(rows, count, width, target, copy); };
  if (width <= 4) return take(TwoParts<2>{width});
  if (width <= 8) return take(TwoParts<4>{width});
  if (width <= 16) return take(TwoParts<8>{width});
  if (width <= 32) return take(TwoParts<16>{width});
  if (width <= 64) return take(TwoParts<32>{width});
  take([width](uint8_t* to, const uint8_t* from) noexcept {
    std::memcpy(to, from, static_cast<std::size_t>(width));
  });
}

template <typename Rows>
void take_all(const Rows& rows, int64_t count, int64_t width, uint8_t* target) {
  const bool is_number = visit_width(width, [&](auto known_width) {
    constexpr std::size_t kWidth = known_width();
    take_each(rows, count, int64_t{kWidth}, target,
              [](uint8_t* to, const uint8_t* from) noexcept { std::memcpy(to, from, kWidth); });
  });
  if (!is_number) take_wide(rows, count, width, target);
}

}  // namespace

Buffer take_elements(const std::vector<const uint8_t*>& first, RowIndices indices, int64_t width) {
  uint8_t* target = nullptr;
  Buffer taken = allocate_elements(indices.count, width, &target);
  if (taken.size() == 0) return taken;
  take_all(Indexed{first.data(), indices.begin}, indices.count, width, target);
  return taken;
}

void take_elements(const uint8_t* source, const uint32_t* rows, int64_t count, int64_t width,
                   uint8_t* target) noexcept {
  take_all(Numbered{source, rows}, count, width, target);
}

}  // namespace arrowdl
