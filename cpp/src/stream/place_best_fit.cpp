// Places pieces of sequences in blocks, so that little padding is needed.
#include "stream/place_best_fit.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "arrowdl/error.hpp"

namespace arrowdl {
namespace {

using Number = uint32_t;
constexpr Number kMost = std::numeric_limits<Number>::max();

/// Finds the longest piece that is left. Pieces are sorted by length, of equal ones the first last.
class Pieces {
 public:
  explicit Pieces(const std::vector<Piece>& pieces) : left_(pieces.size() + 1) {
    keys_.reserve(pieces.size());
    for (const Piece& piece : pieces) {
      keys_.push_back(make_key(piece.length, static_cast<Number>(keys_.size())));
    }
    std::sort(keys_.begin(), keys_.end());
    std::iota(left_.begin(), left_.end(), Number{0});
  }

  /// Takes the longest piece of at most `space` values, and subtracts its length. Returns its
  /// number, or kMost if none is left.
  Number take(int64_t* space) {
    const auto end = std::upper_bound(keys_.begin(), keys_.end(), make_key(*space, 0));
    const Number place = find_left(static_cast<Number>(end - keys_.begin()));
    if (place == 0) return kMost;
    left_[place] = place - 1;
    const uint64_t key = keys_[place - 1];
    *space -= static_cast<int64_t>(key >> 32);
    return kMost - static_cast<Number>(key);
  }

 private:
  static uint64_t make_key(int64_t length, Number number) noexcept {
    return static_cast<uint64_t>(length) << 32 | (kMost - number);
  }

  /// The last place up to `place` whose piece is left, counted from 1; 0 if none is. Halves the
  /// path for later calls.
  Number find_left(Number place) noexcept {
    while (left_[place] != place) {
      left_[place] = left_[left_[place]];
      place = left_[place];
    }
    return place;
  }

  std::vector<uint64_t> keys_;  ///< length, then the number of the piece, descending
  std::vector<Number> left_;    ///< for each place the same one, or an earlier one if it is taken
};

/// The block of each piece, and how much padding each block has.
struct FilledBlocks {
  std::vector<Number> of_piece;
  std::vector<int64_t> padding;
};

FilledBlocks fill_blocks(const std::vector<Piece>& pieces, int64_t length) {
  FilledBlocks blocks;
  blocks.of_piece.resize(pieces.size());
  Pieces left(pieces);
  for (std::size_t placed = 0; placed < pieces.size();) {
    int64_t space = length;
    for (Number i = left.take(&space); i != kMost; i = left.take(&space), ++placed) {
      blocks.of_piece[i] = static_cast<Number>(blocks.padding.size());
    }
    blocks.padding.push_back(space);
  }
  return blocks;
}

/// Numbers the blocks in the order of their first pieces, the one with the most padding last.
void sort_blocks(FilledBlocks* blocks) {
  const auto most = std::max_element(blocks->padding.begin(), blocks->padding.end());
  std::vector<Number> numbers(blocks->padding.size(), kMost);
  Number next = 0;
  const auto last = static_cast<std::size_t>(most - blocks->padding.begin());
  numbers[last] = static_cast<Number>(numbers.size() - 1);
  for (Number& block : blocks->of_piece) {
    if (numbers[block] == kMost) numbers[block] = next++;
    block = numbers[block];
  }
}

}  // namespace

Placement place_best_fit(const std::vector<Piece>& pieces, int64_t length) {
  if (pieces.size() >= kMost) {
    raise_buffer_error(pieces.size(),
                       " sequences are too many to place together: give a smaller "
                       "buffer_size=");
  }
  Placement placement;
  if (pieces.empty()) return placement;
  FilledBlocks blocks = fill_blocks(pieces, length);
  placement.last_padding = *std::max_element(blocks.padding.begin(), blocks.padding.end());
  sort_blocks(&blocks);
  // Counts, then starts that become the ends as the pieces are moved.
  std::vector<std::size_t>& ends = placement.ends;
  ends.resize(blocks.padding.size());
  for (const Number block : blocks.of_piece) {
    if (block + 1 < ends.size()) ++ends[block + 1];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  placement.pieces.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    placement.pieces[ends[blocks.of_piece[i]]++] = pieces[i];
  }
  return placement;
}

}  // namespace arrowdl
