// Gathers elements of a fixed width.
#include "compute/gather_elements.hpp"

#include <algorithm>
#include <utility>

#include "compute/allocate_elements.hpp"
#include "util/copy_pieces.hpp"
#include "util/parallel_for.hpp"
#include "util/prefetch_memory.hpp"

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

namespace {

/// The addresses of element 0 of each source.
std::vector<const uint8_t*> find_first(const Selection& selection, int64_t buffer, int64_t width) {
  std::vector<const uint8_t*> first;
  first.reserve(selection.sources.size());
  for (const DeviceArray& source : selection.sources) {
    const auto* elements = source.buffer_as<uint8_t>(buffer);
    first.push_back(elements == nullptr ? nullptr : elements + source.offset() * width);
  }
  return first;
}

}  // namespace

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
  return gather_elements(find_first(selection, buffer, width), selection.ranges, selection.length,
                         width);
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
  columns_.emplace_back(RangeCopy(find_first(selection, buffer, width), selection.ranges, width),
                        target, size);
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

ARROWDL_END_NAMESPACE
