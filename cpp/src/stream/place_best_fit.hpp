// Places pieces of sequences in blocks, so that little padding is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stream/sequence_reader.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Reorders the pieces of window after window. Keeps its memory from one to the next.
class BestFit {
 public:
  /// No piece is longer than `length`.
  explicit BestFit(int64_t length) : length_(length) {}

  /// Moves the pieces of a block together, in each in the order that they came in. A block takes
  /// the longest piece that is left, then again and again the longest one that fits, of equal ones
  /// the first. Blocks are in the order of their first pieces, but the one with the most padding
  /// comes last. Takes O(n + length) for n pieces.
  void place(std::vector<Piece>* pieces);
  /// The end of each block in the pieces.
  const std::vector<std::size_t>& ends() const noexcept { return ends_; }
  /// The padding of the last block.
  int64_t last_padding() const noexcept { return last_padding_; }

 private:
  using Number = uint32_t;
  static constexpr Number kNone = UINT32_MAX;

  void sort_by_length(const std::vector<Piece>& pieces);
  Number take_longest(int64_t* space) noexcept;
  void fill_blocks(std::size_t count);
  void number_blocks();

  int64_t length_;
  std::vector<Number> by_length_;  ///< pieces, of equal lengths the first first
  // For each length:
  std::vector<Number> next_;     ///< the first piece that is left, in `by_length_`
  std::vector<Number> stops_;    ///< the end of its pieces in `by_length_`
  std::vector<Number> longest_;  ///< itself if a piece is left, else a smaller length
  std::vector<Number> block_of_piece_;
  std::vector<int64_t> padding_;  ///< of each block
  std::vector<Number> numbers_;   ///< of each block, in the order of the result
  std::vector<std::size_t> ends_;
  std::vector<Piece> placed_;
  int64_t last_padding_ = 0;
};

ARROWDL_END_NAMESPACE
