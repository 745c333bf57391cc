// Takes bits, in any order.
#include "compute/take_bits.hpp"

#include <algorithm>
#include <numeric>

#include "util/bit_util.hpp"
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

/// `read_bit(index)` is 0 or 1.
template <typename ReadBit>
void write_bits(RowIndices indices, uint8_t* target, const ReadBit& read_bit) {
  const RowIndex* index = indices.begin;
  const auto next = [&](int64_t count) {
    unsigned byte = 0;
    for (int64_t i = 0; i < count; ++i) byte |= read_bit(index[i]) << i;
    index += count;
    return static_cast<uint8_t>(byte);
  };
  for (int64_t i = indices.count / 8; i > 0; --i) *target++ = next(8);
  if (indices.count % 8 != 0) *target = next(indices.count % 8);
}

void take_single_bits(const std::vector<SourceBits>& sources, RowIndices indices, uint8_t* target) {
  if (sources.size() == 1) {
    const Lookup bits(sources.front());
    write_bits(indices, target, [bits](RowIndex index) { return bits[index.row]; });
    return;
  }
  const std::vector<Lookup> lookups(sources.begin(), sources.end());
  write_bits(indices, target,
             [first = lookups.data()](RowIndex index) { return first[index.source][index.row]; });
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

/// Eight bytes of 0 or 1, the first one lowest, as bits.
uint8_t pack_bytes(uint64_t bytes) noexcept {
  return static_cast<uint8_t>((bytes * 0x0102040810204080) >> 56);
}

}  // namespace

Buffer take_numbered_bits(const std::vector<SourceBits>& sources,
                          const std::vector<int64_t>& lengths, const uint32_t* rows,
                          int64_t count) {
  uint8_t* bytes = nullptr;
  const Buffer unpacked =
      Buffer::allocate(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), &bytes);
  uint8_t* end = bytes;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].bits == nullptr) {
      std::fill_n(end, lengths[i], uint8_t{1});
    } else {
      unpack_bits(sources[i].bits, sources[i].offset, lengths[i], end);
    }
    end += lengths[i];
  }
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(bitmap_size(count), &target);
  const auto next = [&](int64_t bits) {
    uint64_t word = 0;
    for (int64_t i = 0; i < bits; ++i) word |= uint64_t{bytes[rows[i]]} << (8 * i);
    rows += bits;
    return pack_bytes(word);
  };
  for (int64_t i = count / 8; i > 0; --i) *target++ = next(8);
  if (count % 8 != 0) *target = next(count % 8);
  return taken;
}

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
