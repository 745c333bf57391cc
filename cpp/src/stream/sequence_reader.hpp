// Reads the rows of a stream as sequences of values.
#pragma once

#include <cstdint>
#include <vector>

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/pack.hpp"
#include "stream/block_layout.hpp"
#include "stream/row_reader.hpp"

namespace arrowdl {

/// Consecutive values of one sequence, at least one.
struct Piece {
  std::size_t source = 0;  ///< index of the array
  int64_t row = 0;         ///< of that array
  int64_t start = 0;       ///< the first value, from the start of the sequence
  int64_t length = 0;
};

/// The columns of an array, and the items of the packed ones.
struct SequenceSource {
  std::vector<DeviceArray> columns;
  std::vector<DeviceArray> items;  ///< empty arrays for columns that are not packed
};

/// Checks rows and divides them into pieces. Where a call raises, the same row is next again.
class SequenceReader {
 public:
  /// `layout` must outlive the reader.
  SequenceReader(RowReader reader, const BlockLayout& layout, const PackOptions& options);

  /// Goes on to the next row with values, unless the current one has values left. Returns false at
  /// the end.
  bool advance();
  /// The next values of the row, at most `most`.
  Piece peek(int64_t most) const noexcept;
  void skip(int64_t length) noexcept;
  /// Whether the current row has values left.
  bool is_inside_row() const noexcept { return rest_.length > 0; }
  /// The next row and value; `block` is 0.
  PackPosition position() const noexcept;

  /// The arrays that pieces refer to.
  const std::vector<SequenceSource>& sources() const noexcept { return sources_; }
  /// Forgets the arrays of earlier pieces.
  void forget_sources();

 private:
  bool open_source();
  int64_t measure_row(const SequenceSource& source) const;
  int64_t measure_column(const SequenceSource& source, int64_t column) const;
  void check_first_value(int64_t length) const;

  RowReader reader_;
  const BlockLayout& layout_;
  LongSequence longer_;
  int64_t first_value_;  ///< of the first row; 0 once it is read
  std::vector<SequenceSource> sources_;
  int64_t first_row_;          ///< of the last source, counted from the start of the whole source
  int64_t source_length_ = 0;  ///< rows of the last source
  int64_t next_row_ = 0;       ///< of the last source
  Piece rest_;                 ///< of the current row
};

/// The items of `piece` in column `column`. Raises ValueError for malformed offsets.
Range find_items(const SequenceSource& source, std::size_t column, const Piece& piece);

}  // namespace arrowdl
