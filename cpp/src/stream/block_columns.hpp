// Makes the columns of blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "stream/block_layout.hpp"
#include "stream/sequence_reader.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The pieces of a block, and the position after it.
struct Block {
  std::size_t end = 0;  ///< of its pieces; they start where those of the block before end
  PackPosition after;
};

/// Consecutive blocks. Borrows.
struct Blocks {
  const Piece* pieces;  ///< of the first block
  const Block* blocks;
  std::size_t first;  ///< the number of pieces before those of the first block
  int64_t count;
  int64_t length;  ///< of a block

  /// Blocks `start` to `start + part_count`.
  Blocks slice(int64_t start, int64_t part_count) const noexcept {
    const std::size_t from = start == 0 ? first : blocks[start - 1].end;
    return {pieces + (from - first), blocks + start, from, part_count, length};
  }

  /// Calls `visit_piece(piece, number)` for each piece of a block, numbers from 1, and then
  /// `visit_end(used)`, the number of values in the block.
  template <typename VisitPiece, typename VisitEnd>
  void visit(const VisitPiece& visit_piece, const VisitEnd& visit_end) const {
    const Piece* piece = pieces;
    for (int64_t i = 0; i < count; ++i) {
      int64_t used = 0;
      int32_t number = 0;
      for (const Piece* end = pieces + (blocks[i].end - first); piece != end; ++piece) {
        visit_piece(*piece, ++number);
        used += piece->length;
      }
      visit_end(used);
    }
  }
};

/// Column `column` of the source for `blocks`: the items of the pieces and the padding, or lists of
/// one value for each piece.
OwnedArray make_block_column(const BlockLayout& layout, const std::vector<SequenceSource>& sources,
                             std::size_t column, const Blocks& blocks);

/// The column `added` for `blocks`.
OwnedArray make_added_column(const BlockLayout& layout, AddedColumn added, const Blocks& blocks);

ARROWDL_END_NAMESPACE
