// Makes the columns that say where the sequences of blocks are.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/owned.hpp"
#include "stream/block_layout.hpp"
#include "stream/sequence_reader.hpp"

namespace arrowdl {

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

  /// Calls `visit_piece(piece, number)` for each piece of a block, numbers from 1, and then
  /// `visit_end(used)`, the number of values in the block.
  template <typename VisitPiece, typename VisitEnd>
  void visit(const VisitPiece& visit_piece, const VisitEnd& visit_end) const {
    const Piece* piece = pieces;
    std::size_t start = first;
    for (const Block* block = blocks; block != blocks + count; ++block) {
      int64_t used = 0;
      int32_t number = 0;
      for (; start < block->end; ++start, ++piece) {
        visit_piece(*piece, ++number);
        used += piece->length;
      }
      visit_end(used);
    }
  }
};

/// An array of the column `added` for `blocks`.
OwnedArray make_added_column(AddedColumn added, const Blocks& blocks);

/// Lists of `values`, of as many as the blocks have pieces.
OwnedArray make_piece_lists(OwnedArray values, const Blocks& blocks);

/// Fixed-size lists of `items`, `count` in all.
OwnedArray make_fixed_size_lists(OwnedArray items, int64_t count);

}  // namespace arrowdl
