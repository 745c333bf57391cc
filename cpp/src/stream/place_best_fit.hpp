// Places pieces of sequences in blocks, so that little padding is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stream/sequence_reader.hpp"

namespace arrowdl {

struct Placement {
  std::vector<Piece> pieces;      ///< block by block, in each in the order that they came in
  std::vector<std::size_t> ends;  ///< of each block in `pieces`
  int64_t last_padding = 0;       ///< of the last block
};

/// Each block takes the longest piece that is left, then again and again the longest one that fits,
/// of equal ones the first: n pieces in O(n log n). Blocks are in the order of their first pieces,
/// but the one with the most padding comes last. No piece is longer than `length`.
Placement place_best_fit(const std::vector<Piece>& pieces, int64_t length);

}  // namespace arrowdl
