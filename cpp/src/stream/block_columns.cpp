// Makes the columns of blocks.
#include "stream/block_columns.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "compute/allocate_elements.hpp"
#include "compute/gather.hpp"
#include "compute/take.hpp"
#include "util/copy_bytes.hpp"
#include "util/parallel_for.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The bytes that one thread writes at a time. If pieces are in no order, splitting a batch in two
/// pays off.
constexpr int64_t kChunk = int64_t{256} << 10;

OwnedArray make_node(std::vector<Buffer> buffers, int64_t length, OwnedArray child = {}) {
  ArrayParts parts;
  parts.length = length;
  parts.buffers = std::move(buffers);
  if (child->release != nullptr) parts.children.push_back(std::move(child));
  return make_array(std::move(parts));
}

OwnedArray make_fixed_size_lists(OwnedArray items, const Blocks& blocks) {
  return make_node({Buffer()}, blocks.count, std::move(items));
}

/// `blocks.length` items of `width` bytes for each of `blocks`. `fill(part, target)` writes those
/// of some consecutive blocks, on several threads.
template <typename Fill>
OwnedArray fill_blocks(const Blocks& blocks, int64_t width, const Fill& fill) {
  uint8_t* target = nullptr;
  const int64_t count = blocks.count * blocks.length;
  Buffer items = allocate_elements(count, width, &target);
  const int64_t size = blocks.length * width;
  const int64_t step = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, size));
  parallel_for((blocks.count + step - 1) / step, [&](int64_t chunk) noexcept {
    const int64_t start = chunk * step;
    fill(blocks.slice(start, std::min(step, blocks.count - start)), target + start * size);
  });
  return make_fixed_size_lists(make_node({Buffer(), std::move(items)}, count), blocks);
}

// ---------------------------------------------------------------- columns of the source

/// The memory of a source: its items, and where those of each row start.
struct SourceItems {
  const uint8_t* items;
  const int64_t* starts;
};

const uint8_t* find_elements(const DeviceArray& array, int64_t width) {
  const auto* elements = array.buffer_as<uint8_t>(1);
  return elements == nullptr ? nullptr : elements + array.offset() * width;
}

OwnedArray copy_elements(const std::vector<SequenceSource>& sources, std::size_t column,
                         std::size_t packed, const DeviceArray& padding, const Blocks& blocks) {
  const int64_t width = padding.type().byte_width;
  std::vector<SourceItems> elements;
  for (const SequenceSource& source : sources) {
    elements.push_back({find_elements(source.items[column], width), source.find_starts(packed)});
  }
  const uint8_t* const pads = find_elements(padding, width);
  const auto find = [&](const Piece& piece) {
    const SourceItems& source = elements[piece.source];
    return source.items + (source.starts[piece.row] + piece.start) * width;
  };
  return fill_blocks(blocks, width, [&](const Blocks& part, uint8_t* target) {
    const Piece* const last = part.pieces + (part.blocks[part.count - 1].end - part.first) - 1;
    const auto copy = [&](const uint8_t* from, int64_t count) {
      std::memcpy(target, from, static_cast<std::size_t>(count * width));
      target += count * width;
    };
    part.visit(
        [&](const Piece& piece, int32_t) {
          const Piece* const next = &piece + 1;
          // The pieces of a window are in no order that processors can predict.
          if (&piece != last && width > 0) prefetch_memory(find(*next), next->length * width);
          copy(find(piece), piece.length);
        },
        [&](int64_t used) { copy(pads, part.length - used); });
  });
}

OwnedArray gather_items(const std::vector<SequenceSource>& sources, std::size_t column,
                        std::size_t packed, const DeviceArray& padding, const Blocks& blocks) {
  std::vector<DeviceArray> arrays;
  for (const SequenceSource& source : sources) arrays.push_back(source.items[column]);
  arrays.push_back(padding);
  std::vector<RowRange> ranges;
  blocks.visit(
      [&](const Piece& piece, int32_t) {
        const int64_t start = sources[piece.source].find_starts(packed)[piece.row] + piece.start;
        append_range(&ranges, piece.source, Range{start, piece.length});
      },
      [&](int64_t used) { append_range(&ranges, sources.size(), Range{0, blocks.length - used}); });
  return make_fixed_size_lists(gather(arrays, ranges), blocks);
}

OwnedArray list_values(const std::vector<SequenceSource>& sources, std::size_t column,
                       const Blocks& blocks) {
  std::vector<DeviceArray> arrays;
  for (const SequenceSource& source : sources) arrays.push_back(source.columns[column]);
  int32_t* offsets = nullptr;
  Buffer buffer = allocate_elements(blocks.count + 1, &offsets);
  *offsets = 0;
  std::vector<RowIndex> rows;
  blocks.visit([&](const Piece& piece, int32_t) { rows.push_back({piece.source, piece.row}); },
               [&](int64_t) { *++offsets = static_cast<int32_t>(rows.size()); });
  OwnedArray values = take(arrays, {rows.data(), static_cast<int64_t>(rows.size())});
  return make_node({Buffer(), std::move(buffer)}, blocks.count, std::move(values));
}

// ---------------------------------------------------------------- columns that are added

/// The indices of the items in their pieces, and in the padding. `indices` counts up from 0.
OwnedArray make_position_ids(const std::vector<int32_t>& indices, const Blocks& blocks) {
  return fill_blocks(blocks, sizeof(int32_t), [&](const Blocks& part, uint8_t* target) {
    const auto copy = [&](int64_t count) {
      const int64_t size = count * static_cast<int64_t>(sizeof(int32_t));
      std::memcpy(target, indices.data(), static_cast<std::size_t>(size));
      target += size;
    };
    part.visit([&](const Piece& piece, int32_t) { copy(piece.length); },
               [&](int64_t used) { copy(part.length - used); });
  });
}

/// Writes `count` times `number`, a cache line at a time. Returns the end.
int32_t* fill(int32_t* target, int64_t count, int32_t number) {
  std::array<int32_t, 16> line;
  line.fill(number);
  for (; count >= 16; count -= 16, target += 16) std::memcpy(target, line.data(), sizeof(line));
  return std::fill_n(target, count, number);
}

/// The numbers of the pieces that the items are in, from 1; 0 for the padding.
OwnedArray make_segment_ids(const Blocks& blocks) {
  return fill_blocks(blocks, sizeof(int32_t), [](const Blocks& part, uint8_t* bytes) {
    auto* target = reinterpret_cast<int32_t*>(bytes);
    part.visit(
        [&](const Piece& piece, int32_t number) { target = fill(target, piece.length, number); },
        [&](int64_t used) { target = fill(target, part.length - used, 0); });
  });
}

OwnedArray make_cu_seqlens(const Blocks& blocks) {
  const auto pieces = static_cast<int64_t>(blocks.blocks[blocks.count - 1].end - blocks.first);
  int32_t* items = nullptr;
  int32_t* offsets = nullptr;
  Buffer item_buffer = allocate_elements(pieces + 2 * blocks.count, &items);
  Buffer offset_buffer = allocate_elements(blocks.count + 1, &offsets);
  int32_t* item = items;
  *offsets++ = 0;
  int32_t end = 0;
  bool is_first = true;
  blocks.visit(
      [&](const Piece& piece, int32_t) {
        if (std::exchange(is_first, false)) *item++ = 0;
        *item++ = end += static_cast<int32_t>(piece.length);
      },
      [&](int64_t used) {
        if (used < blocks.length) *item++ = static_cast<int32_t>(blocks.length);
        *offsets++ = static_cast<int32_t>(item - items);
        end = 0;
        is_first = true;
      });
  OwnedArray values = make_node({Buffer(), std::move(item_buffer)}, item - items);
  return make_node({Buffer(), std::move(offset_buffer)}, blocks.count, std::move(values));
}

OwnedArray make_positions(const Blocks& blocks) {
  constexpr int64_t kNumbers = 3;
  int64_t* target = nullptr;
  Buffer numbers = allocate_elements(blocks.count * kNumbers, &target);
  for (int64_t i = 0; i < blocks.count; ++i) {
    const PackPosition& after = blocks.blocks[i].after;
    *target++ = after.row;
    *target++ = after.value;
    *target++ = after.block;
  }
  return make_fixed_size_lists(make_node({Buffer(), std::move(numbers)}, blocks.count * kNumbers),
                               blocks);
}

}  // namespace

OwnedArray make_block_column(const BlockLayout& layout, const std::vector<SequenceSource>& sources,
                             std::size_t column, const Blocks& blocks) {
  if (!layout.is_packed(column)) return list_values(sources, column, blocks);
  const auto place = std::find(layout.packed.begin(), layout.packed.end(), column);
  const auto packed = static_cast<std::size_t>(place - layout.packed.begin());
  const DeviceArray& padding = layout.padding[column];
  return padding.type().layout == Layout::kFixedWidth
             ? copy_elements(sources, column, packed, padding, blocks)
             : gather_items(sources, column, packed, padding, blocks);
}

OwnedArray make_added_column(const BlockLayout& layout, AddedColumn added, const Blocks& blocks) {
  switch (added) {
    case AddedColumn::kPositionIds:
      return make_position_ids(layout.indices, blocks);
    case AddedColumn::kSegmentIds:
      return make_segment_ids(blocks);
    case AddedColumn::kCuSeqlens:
      return make_cu_seqlens(blocks);
    case AddedColumn::kResumeFrom:
      break;
  }
  return make_positions(blocks);
}

ARROWDL_END_NAMESPACE
