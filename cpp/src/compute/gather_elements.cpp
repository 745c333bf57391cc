// Gathers elements of a fixed width.
#include "compute/gather_elements.hpp"

#include <algorithm>
#include <cstring>

#include "compute/allocate_elements.hpp"
#include "util/parallel_for.hpp"

namespace arrowdl {
namespace {

/// How many ranges ahead to prefetch: processors cannot predict ranges in random order.
constexpr std::size_t kAhead = 3;

/// The bytes that one thread copies at a time.
constexpr int64_t kChunk = int64_t{256} << 10;

void fetch([[maybe_unused]] const uint8_t* memory, [[maybe_unused]] int64_t size) {
#if defined(__GNUC__)
  constexpr int64_t kLine = 64;
  constexpr int64_t kMost = 16 * kLine;
  for (int64_t i = 0; i < std::min(size, kMost); i += kLine) __builtin_prefetch(memory + i);
#endif
}

/// The start of a chunk: `skip` bytes into a range.
struct ChunkStart {
  std::size_t range;
  int64_t skip;
};

std::vector<ChunkStart> find_chunks(const std::vector<RowRange>& ranges, int64_t width) {
  std::vector<ChunkStart> starts;
  int64_t skip = 0;  // from the start of the range to the next chunk
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const int64_t size = ranges[i].rows.length * width;
    for (; skip < size; skip += kChunk) starts.push_back({i, skip});
    skip -= size;
  }
  return starts;
}

}  // namespace

Buffer gather_elements(const std::vector<const uint8_t*>& first,
                       const std::vector<RowRange>& ranges, int64_t length, int64_t width) {
  uint8_t* target = nullptr;
  Buffer elements = allocate_elements(length, width, &target);
  const int64_t size = elements.size();
  if (size == 0) return elements;
  const auto address = [&](const RowRange& range) noexcept {
    return first[range.source] + range.rows.start * width;
  };
  const std::vector<ChunkStart> starts = find_chunks(ranges, width);
  parallel_for(static_cast<int64_t>(starts.size()), [&](int64_t chunk) noexcept {
    auto [i, skip] = starts[static_cast<std::size_t>(chunk)];
    uint8_t* to = target + chunk * kChunk;
    const uint8_t* const end = target + std::min(size, (chunk + 1) * kChunk);
    for (; to < end; ++i, skip = 0) {
      if (i + kAhead < ranges.size()) {
        fetch(address(ranges[i + kAhead]), ranges[i + kAhead].rows.length * width);
      }
      const int64_t n = std::min<int64_t>(end - to, ranges[i].rows.length * width - skip);
      std::memcpy(to, address(ranges[i]) + skip, static_cast<std::size_t>(n));
      to += n;
    }
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

}  // namespace arrowdl
