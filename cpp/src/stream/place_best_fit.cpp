// Places pieces of sequences in blocks, so that little padding is needed.
#include "stream/place_best_fit.hpp"

#include <algorithm>
#include <numeric>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

void BestFit::place(std::vector<Piece>* pieces) {
  if (pieces->size() >= kNone) {
    raise_buffer_error(pieces->size(),
                       " sequences are too many to place together: give a smaller buffer_size=");
  }
  ends_.clear();
  if (pieces->empty()) return;
  sort_by_length(*pieces);
  fill_blocks(pieces->size());
  number_blocks();
  // Counts, then starts that become the ends as the pieces are moved.
  ends_.resize(padding_.size());
  for (const Number block : block_of_piece_) {
    if (block + 1 < ends_.size()) ++ends_[block + 1];
  }
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  placed_.resize(pieces->size());
  const Number* block = block_of_piece_.data();
  for (const Piece& piece : *pieces) placed_[ends_[*block++]++] = piece;
  pieces->swap(placed_);
}

void BestFit::sort_by_length(const std::vector<Piece>& pieces) {
  const auto lengths = static_cast<std::size_t>(length_) + 1;
  stops_.assign(lengths, 0);
  longest_.resize(lengths);
  by_length_.resize(pieces.size());
  for (const Piece& piece : pieces) ++stops_[static_cast<std::size_t>(piece.length)];
  longest_[0] = 0;
  for (std::size_t i = 1; i < lengths; ++i) {
    longest_[i] = stops_[i] > 0 ? static_cast<Number>(i) : longest_[i - 1];
    stops_[i] += stops_[i - 1];
  }
  next_ = stops_;
  for (std::size_t i = pieces.size(); i-- > 0;) {
    by_length_[--next_[static_cast<std::size_t>(pieces[i].length)]] = static_cast<Number>(i);
  }
}

/// Takes the longest piece of at most `space` values, and subtracts its length. Returns its number,
/// or kNone if none fits.
BestFit::Number BestFit::take_longest(int64_t* space) noexcept {
  auto length = static_cast<Number>(*space);
  while (longest_[length] != length) {  // halves the path for later calls
    longest_[length] = longest_[longest_[length]];
    length = longest_[length];
  }
  if (length == 0) return kNone;
  *space -= length;
  const Number piece = by_length_[next_[length]++];
  if (next_[length] == stops_[length]) longest_[length] = length - 1;
  return piece;
}

void BestFit::fill_blocks(std::size_t count) {
  block_of_piece_.resize(count);
  padding_.clear();
  while (count > 0) {
    int64_t space = length_;
    for (Number i = take_longest(&space); i != kNone; i = take_longest(&space), --count) {
      block_of_piece_[i] = static_cast<Number>(padding_.size());
    }
    padding_.push_back(space);
  }
}

void BestFit::number_blocks() {
  const auto most = std::max_element(padding_.begin(), padding_.end());
  last_padding_ = *most;
  numbers_.assign(padding_.size(), kNone);
  numbers_[static_cast<std::size_t>(most - padding_.begin())] =
      static_cast<Number>(padding_.size() - 1);
  Number next = 0;
  for (Number& block : block_of_piece_) {
    if (numbers_[block] == kNone) numbers_[block] = next++;
    block = numbers_[block];
  }
}

ARROWDL_END_NAMESPACE
