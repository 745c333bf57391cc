// Copies elements of a fixed width.
#include "compute/elements.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compute/allocate_elements.hpp"
#include "util/copy_bytes.hpp"
#include "util/parallel_for.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The bytes that one thread copies at a time.
constexpr int64_t kChunk = int64_t{256} << 10;

}  // namespace

/// A copy of ranges, in chunks for several threads. Not in the unnamed namespace, since
/// `ElementGathers::Column`, which the header names, holds one.
class RangeCopy {
 public:
  /// `ranges` must outlive the copy.
  RangeCopy(std::vector<const uint8_t*> first, const std::vector<RowRange>& ranges, int64_t width)
      : first_(std::move(first)), ranges_(ranges), width_(width), ends_(first_.size()) {
    int64_t bytes = 0;
    int64_t skip = 0;  // from the start of the range to the next chunk
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const int64_t size = ranges[i].rows.length * width;
      int64_t& end = ends_[ranges[i].source];
      end = std::max(end, ranges[i].rows.end() * width);
      for (; skip < size; skip += kChunk) starts_.push_back({i, skip});
      skip -= size;
      bytes += size;
    }
    const auto count = static_cast<int64_t>(ranges.size());
    const int64_t mean = bytes / std::max<int64_t>(1, count);
    ahead_ = static_cast<std::size_t>(choose_prefetched(mean));
  }

  int64_t chunk_count() const noexcept { return static_cast<int64_t>(starts_.size()); }

  /// Copies chunk `chunk` to its place in the `size` bytes at `target`.
  void copy_chunk(int64_t chunk, uint8_t* target, int64_t size) const noexcept {
    uint8_t* to = target + chunk * kChunk;
    const uint8_t* const end = target + std::min(size, (chunk + 1) * kChunk);
    auto [i, skip] = starts_[static_cast<std::size_t>(chunk)];
    for (; to < end; ++i, skip = 0) {
      if (i + ahead_ < ranges_.size()) {
        const RowRange& ahead = ranges_[i + ahead_];
        prefetch_memory(first_[ahead.source] + ahead.rows.start * width_,
                        ahead.rows.length * width_);
      }
      const RowRange& range = ranges_[i];
      const int64_t start = range.rows.start * width_ + skip;
      const int64_t n = std::min<int64_t>(end - to, range.rows.length * width_ - skip);
      copy_piece(first_[range.source] + start, n,
                 std::min<int64_t>(end - to, ends_[range.source] - start), to);
      to += n;
    }
  }

 private:
  /// The start of a chunk: `skip` bytes into a range.
  struct ChunkStart {
    std::size_t range;
    int64_t skip;
  };

  std::vector<const uint8_t*> first_;
  const std::vector<RowRange>& ranges_;
  int64_t width_;
  std::size_t ahead_ = 0;  // ranges
  std::vector<ChunkStart> starts_;
  std::vector<int64_t> ends_;  // of the bytes of each source that some range has
};

std::vector<const uint8_t*> find_first(const std::vector<DeviceArray>& sources, int64_t buffer,
                                       int64_t width) {
  std::vector<const uint8_t*> first;
  first.reserve(sources.size());
  for (const DeviceArray& source : sources) {
    const auto* elements = source.buffer_as<uint8_t>(buffer);
    first.push_back(elements == nullptr ? nullptr : elements + source.offset() * width);
  }
  return first;
}

Buffer gather_elements(const std::vector<const uint8_t*>& first,
                       const std::vector<RowRange>& ranges, int64_t length, int64_t width) {
  uint8_t* target = nullptr;
  Buffer elements = allocate_elements(length, width, &target);
  const int64_t size = elements.size();
  if (size == 0) return elements;
  const RangeCopy copy(first, ranges, width);
  parallel_for(copy.chunk_count(),
               [&](int64_t chunk) noexcept { copy.copy_chunk(chunk, target, size); });
  return elements;
}

Buffer gather_elements(const Selection& selection, int64_t buffer, int64_t width) {
  return gather_elements(find_first(selection.sources, buffer, width), selection.ranges,
                         selection.length, width);
}

class ElementGathers::Column {
 public:
  Column(RangeCopy copy, uint8_t* target, int64_t size)
      : copy_(std::move(copy)), target_(target), size_(size) {}

  int64_t chunk_count() const noexcept { return copy_.chunk_count(); }
  void copy_chunk(int64_t chunk) const noexcept { copy_.copy_chunk(chunk, target_, size_); }

 private:
  RangeCopy copy_;
  uint8_t* target_;
  int64_t size_;
};

ElementGathers::ElementGathers() = default;
ElementGathers::~ElementGathers() = default;

Buffer ElementGathers::add(const Selection& selection, int64_t buffer, int64_t width) {
  uint8_t* target = nullptr;
  Buffer elements = allocate_elements(selection.length, width, &target);
  const int64_t size = elements.size();
  if (size == 0) return elements;
  columns_.emplace_back(
      RangeCopy(find_first(selection.sources, buffer, width), selection.ranges, width), target,
      size);
  const int64_t before = chunk_ends_.empty() ? 0 : chunk_ends_.back();
  chunk_ends_.push_back(before + columns_.back().chunk_count());
  bytes_ += size;
  return elements;
}

const std::vector<RowRange>& ElementGathers::keep(std::vector<RowRange> ranges) {
  return kept_.emplace_back(std::move(ranges));
}

void ElementGathers::run() const {
  const auto copy = [this](int64_t chunk) noexcept {
    const auto end = std::upper_bound(chunk_ends_.begin(), chunk_ends_.end(), chunk);
    const Column& column = columns_[static_cast<std::size_t>(end - chunk_ends_.begin())];
    column.copy_chunk(chunk - (*end - column.chunk_count()));
  };
  const int64_t chunks = chunk_ends_.empty() ? 0 : chunk_ends_.back();
  if (bytes_ >= kFewestSharedBytes) return parallel_for(chunks, copy);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) copy(chunk);
}

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

/// As `take_each` for elements that are not numbers, and may have no bytes.
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
