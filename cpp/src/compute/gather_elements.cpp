// Gathers elements of a fixed width.
#include "compute/gather_elements.hpp"

#include <algorithm>
#include <cstring>

#include "compute/allocate_elements.hpp"
#include "util/parallel_for.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// How many ranges ahead to prefetch: processors cannot predict ranges in random order.
constexpr std::size_t kAhead = 16;

/// The bytes that one thread copies at a time.
constexpr int64_t kChunk = int64_t{256} << 10;

/// Ranges of up to this size are copied as if they had it: sizes that vary cost a mispredicted
/// branch each.
constexpr int64_t kShort = 64;

void fetch([[maybe_unused]] const uint8_t* memory, [[maybe_unused]] int64_t size) {
#if defined(__GNUC__)
  constexpr int64_t kLine = 64;
  constexpr int64_t kMost = 16 * kLine;
  const int64_t last = std::min(size, kMost) - 1;  // may be in the next line
  __builtin_prefetch(memory);
  for (int64_t i = kLine; i < last; i += kLine) __builtin_prefetch(memory + i);
  __builtin_prefetch(memory + last);
#endif
}

/// The start of a chunk: `skip` bytes into a range.
struct ChunkStart {
  std::size_t range;
  int64_t skip;
};

/// A copy of ranges, in chunks for several threads.
class RangeCopy {
 public:
  RangeCopy(const std::vector<const uint8_t*>& first, const std::vector<RowRange>& ranges,
            int64_t width)
      : first_(first), ranges_(ranges), width_(width), ends_(first.size()) {
    int64_t skip = 0;  // from the start of the range to the next chunk
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const int64_t size = ranges[i].rows.length * width;
      int64_t& end = ends_[ranges[i].source];
      end = std::max(end, ranges[i].rows.end() * width);
      for (; skip < size; skip += kChunk) starts_.push_back({i, skip});
      skip -= size;
    }
  }

  int64_t chunk_count() const noexcept { return static_cast<int64_t>(starts_.size()); }

  /// Copies chunk `chunk` to [to, end).
  void copy_chunk(int64_t chunk, uint8_t* to, const uint8_t* end) const noexcept {
    auto [i, skip] = starts_[static_cast<std::size_t>(chunk)];
    for (; to < end; ++i, skip = 0) {
      if (i + kAhead < ranges_.size()) {
        const RowRange& ahead = ranges_[i + kAhead];
        fetch(first_[ahead.source] + ahead.rows.start * width_, ahead.rows.length * width_);
      }
      const RowRange& range = ranges_[i];
      const int64_t start = range.rows.start * width_ + skip;
      const int64_t n = std::min<int64_t>(end - to, range.rows.length * width_ - skip);
      copy(first_[range.source] + start, n,
           std::min<int64_t>(end - to, ends_[range.source] - start), to);
      to += n;
    }
  }

 private:
  /// Copies `n` bytes. `room` bytes can be read and written: the next ranges overwrite the rest.
  static void copy(const uint8_t* from, int64_t n, int64_t room, uint8_t* to) noexcept {
    if (n <= kShort && room >= kShort) {
      std::memcpy(to, from, kShort);
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(n));
    }
  }

  const std::vector<const uint8_t*>& first_;
  const std::vector<RowRange>& ranges_;
  int64_t width_;
  std::vector<ChunkStart> starts_;
  std::vector<int64_t> ends_;  // of the bytes of each source that some range has
};

}  // namespace

Buffer gather_elements(const std::vector<const uint8_t*>& first,
                       const std::vector<RowRange>& ranges, int64_t length, int64_t width) {
  uint8_t* target = nullptr;
  Buffer elements = allocate_elements(length, width, &target);
  const int64_t size = elements.size();
  if (size == 0) return elements;
  const RangeCopy copy(first, ranges, width);
  parallel_for(copy.chunk_count(), [&](int64_t chunk) noexcept {
    copy.copy_chunk(chunk, target + chunk * kChunk, target + std::min(size, (chunk + 1) * kChunk));
  });
  return elements;
}

Buffer gather_elements(const Selection& selection, int64_t buffer, int64_t width) {
  std::vector<const uint8_t*> first;
  first.reserve(selection.sources.size());
  for (const DeviceArray& source : selection.sources) {
    const auto* elements = source.buffer_as<uint8_t>(buffer);
    first.push_back(elements == nullptr ? nullptr : elements + source.offset() * width);
  }
  return gather_elements(first, selection.ranges, selection.length, width);
}

ARROWDL_END_NAMESPACE
