// Takes bits, in any order.
#include "compute/take_bits.hpp"

#include <algorithm>

#include "util/bitmap_writer.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// A source as the loop reads it. A source without a bitmap reads one set bit for all rows, so that
/// the loop has no branch.
struct Lookup {
  explicit Lookup(const SourceBits& source) noexcept
      : bits(source.bits == nullptr ? &kSet : source.bits),
        offset(source.bits == nullptr ? 0 : source.offset),
        mask(source.bits == nullptr ? 0 : ~int64_t{0}) {}

  unsigned operator[](uint32_t row) const noexcept {
    const int64_t i = (offset + row) & mask;
    return (static_cast<unsigned>(bits[i >> 3]) >> (i & 7)) & 1U;
  }

  static constexpr uint8_t kSet = 1;
  const uint8_t* bits;
  int64_t offset;
  int64_t mask;
};

void take_single_bits(const std::vector<SourceBits>& sources, RowIndices indices, uint8_t* target) {
  const std::vector<Lookup> lookups(sources.begin(), sources.end());
  const RowIndex* index = indices.begin;
  const auto next = [&](int64_t count) {
    unsigned byte = 0;
    for (int64_t i = 0; i < count; ++i) byte |= lookups[index[i].source][index[i].row] << i;
    index += count;
    return static_cast<uint8_t>(byte);
  };
  for (int64_t i = indices.count / 8; i > 0; --i) *target++ = next(8);
  if (indices.count % 8 != 0) *target = next(indices.count % 8);
}

void take_runs(const std::vector<SourceBits>& sources, RowIndices indices, int64_t run,
               uint8_t* target) {
  BitmapWriter writer(target);
  for (int64_t i = 0; i < indices.count; ++i) {
    const RowIndex index = indices.begin[i];
    const SourceBits& source = sources[index.source];
    if (source.bits == nullptr) {
      writer.append_run(true, run);
    } else {
      writer.append(source.bits, source.offset + index.row * run, run);
    }
  }
}

}  // namespace

Buffer take_bits(const std::vector<SourceBits>& sources, RowIndices indices, int64_t run) {
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(bitmap_size(indices.count * run), &target);
  if (run == 1) {
    take_single_bits(sources, indices, target);
  } else {
    take_runs(sources, indices, run, target);
  }
  return taken;
}

ARROWDL_END_NAMESPACE
