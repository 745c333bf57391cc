// Takes elements of a fixed width, in any order.
#include "compute/take_elements.hpp"

#include <algorithm>
#include <cstring>

#include "compute/allocate_elements.hpp"
#include "util/parallel_for.hpp"
#include "util/prefetch_memory.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// What one thread writes at a time: elements in random order take some 10 ns each, larger ones as
/// long as memory takes.
constexpr int64_t kChunkRows = 1024;
constexpr int64_t kChunkBytes = int64_t{64} << 10;
/// With less to write, one thread is done before another one starts. Scattered bytes take longer
/// than the `kFewestSharedBytes` of one piece.
constexpr int64_t kFewElements = int64_t{4} << 10;
constexpr int64_t kFewBytes = int64_t{128} << 10;

/// How many elements ahead to prefetch: processors cannot predict elements in random order.
constexpr int64_t kAhead = 8;

/// Copies elements of `kBytes` to twice as many bytes, not fewer, in two parts, which may overlap.
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
void take_each(const Rows& rows, int64_t count, int64_t width, uint8_t* target,
               const Copy& copy) noexcept {
  for (int64_t i = 0; i < count; ++i) copy(target + i * width, rows.find(i, width));
}

template <typename Rows>
void take_wide(const Rows& rows, int64_t count, int64_t width, uint8_t* target) noexcept {
  for (int64_t i = 0; i < count; ++i, target += width) {
    if (i + kAhead < count) prefetch_memory(rows.find(i + kAhead, width), width);
    std::memcpy(target, rows.find(i, width), static_cast<std::size_t>(width));
  }
}

/// As `take_each` for elements that are no numbers, and may have no bytes.
template <typename Rows>
void take_others(const Rows& rows, int64_t count, int64_t width, uint8_t* target) noexcept {
  const auto take = [&](const auto& copy) { take_each(rows, count, width, target, copy); };
  if (width == 0) return;
  if (width <= 4) return take(TwoParts<2>{width});
  if (width <= 8) return take(TwoParts<4>{width});
  if (width <= 16) return take(TwoParts<8>{width});
  if (width <= 32) return take(TwoParts<16>{width});
  if (width <= kMostElementBytes) return take(TwoParts<32>{width});
  take_wide(rows, count, width, target);
}

template <typename Rows>
void take_all(const Rows& rows, int64_t count, int64_t width, uint8_t* target) noexcept {
  const bool is_number = visit_width(width, [&](auto known_width) {
    constexpr std::size_t kWidth = known_width();
    take_each(rows, count, int64_t{kWidth}, target,
              [](uint8_t* to, const uint8_t* from) noexcept { std::memcpy(to, from, kWidth); });
  });
  if (!is_number) take_others(rows, count, width, target);
}

}  // namespace

Buffer ElementTakes::add(std::vector<const uint8_t*> first, int64_t width) {
  uint8_t* target = nullptr;
  Buffer taken = allocate_elements(indices_.count, width, &target);
  if (taken.size() == 0) return taken;
  columns_.push_back({std::move(first), width, target});
  bytes_ += width;
  widest_bytes_ = std::max(widest_bytes_, width);
  return taken;
}

void ElementTakes::run() const {
  const auto columns = static_cast<int64_t>(columns_.size());
  const auto take = [this](const Column& column, int64_t start, int64_t count) noexcept {
    take_all(Indexed{column.first.data(), indices_.begin + start}, count, column.width,
             column.target + start * column.width);
  };
  const int64_t rows = indices_.count;
  if (rows * columns < kFewElements && rows * bytes_ < kFewBytes) {
    for (const Column& column : columns_) take(column, 0, rows);
    return;
  }
  const int64_t step = std::clamp<int64_t>(kChunkBytes / widest_bytes_, 1, kChunkRows);
  const int64_t parts = (rows + step - 1) / step;
  const int64_t shares = std::max(rows * columns / kFewElements, rows * bytes_ / kFewBytes);
  parallel_for(
      columns * parts,
      [&](int64_t chunk) noexcept {
        const int64_t start = chunk % parts * step;
        take(columns_[static_cast<std::size_t>(chunk / parts)], start,
             std::min(step, rows - start));
      },
      shares + 1);
}

void take_elements(const uint8_t* source, const uint32_t* rows, int64_t count, int64_t width,
                   uint8_t* target) noexcept {
  take_all(Numbered{source, rows}, count, width, target);
}

ARROWDL_END_NAMESPACE
