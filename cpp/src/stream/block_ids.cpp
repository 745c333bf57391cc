// Makes the columns that say where the sequences of blocks are.
#include "stream/block_ids.hpp"

#include <utility>

#include "compute/allocate_elements.hpp"

namespace arrowdl {
namespace {

OwnedArray make_integers(Buffer elements, int64_t count) {
  ArrayParts parts;
  parts.length = count;
  parts.buffers = {Buffer(), std::move(elements)};
  return make_array(std::move(parts));
}

OwnedArray make_lists(Buffer offsets, OwnedArray items, int64_t count) {
  ArrayParts parts;
  parts.length = count;
  parts.buffers = {Buffer(), std::move(offsets)};
  parts.children.push_back(std::move(items));
  return make_array(std::move(parts));
}

/// Writes `count` numbers, each `kStep` larger than the one before. Returns the end.
template <int32_t kStep>
int32_t* write_run(int32_t* target, int64_t count, int32_t first) {
  for (int64_t i = 0; i < count; ++i) target[i] = first + static_cast<int32_t>(i) * kStep;
  return target + count;
}

/// A run of numbers for each piece and for the padding. Runs count up from 0 with a step of 1, and
/// repeat the number of the piece, 0 for padding, with a step of 0.
template <int32_t kStep>
OwnedArray make_runs(const Blocks& blocks) {
  const int64_t count = blocks.count * blocks.length;
  int32_t* target = nullptr;
  Buffer numbers = allocate_elements(count, &target);
  blocks.visit(
      [&](const Piece& piece, int32_t number) {
        target = write_run<kStep>(target, piece.length, kStep == 0 ? number : 0);
      },
      [&](int64_t used) { target = write_run<kStep>(target, blocks.length - used, 0); });
  return make_fixed_size_lists(make_integers(std::move(numbers), count), blocks.count);
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
  return make_lists(std::move(offset_buffer), make_integers(std::move(item_buffer), item - items),
                    blocks.count);
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
  return make_fixed_size_lists(make_integers(std::move(numbers), blocks.count * kNumbers),
                               blocks.count);
}

}  // namespace

OwnedArray make_fixed_size_lists(OwnedArray items, int64_t count) {
  ArrayParts parts;
  parts.length = count;
  parts.buffers.push_back(Buffer());
  parts.children.push_back(std::move(items));
  return make_array(std::move(parts));
}

OwnedArray make_piece_lists(OwnedArray values, const Blocks& blocks) {
  int32_t* offsets = nullptr;
  Buffer buffer = allocate_elements(blocks.count + 1, &offsets);
  *offsets++ = 0;
  for (int64_t i = 0; i < blocks.count; ++i) {
    *offsets++ = static_cast<int32_t>(blocks.blocks[i].end - blocks.first);
  }
  return make_lists(std::move(buffer), std::move(values), blocks.count);
}

OwnedArray make_added_column(AddedColumn added, const Blocks& blocks) {
  switch (added) {
    case AddedColumn::kPositionIds:
      return make_runs<1>(blocks);
    case AddedColumn::kSegmentIds:
      return make_runs<0>(blocks);
    case AddedColumn::kCuSeqlens:
      return make_cu_seqlens(blocks);
    case AddedColumn::kResumeFrom:
      break;
  }
  return make_positions(blocks);
}

}  // namespace arrowdl
