// Reads the rows of a stream as sequences of values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/pack.hpp"
#include "compute/selection.hpp"
#include "stream/block_layout.hpp"
#include "stream/row_reader.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Consecutive values of one sequence, at least one.
struct Piece {
  uint32_t source = 0;  ///< index of the array
  uint32_t row = 0;     ///< of that array
  int64_t start = 0;    ///< the first value, from the start of the sequence
  int64_t length = 0;
};

/// Where the items of lists with offsets are. Plain lists (no nulls in rows or items) need only
/// their offsets.
class ListOffsets {
 public:
  ListOffsets(const DeviceArray& lists, const DeviceArray& items);

  /// Finds the items of a row. Returns false for lists that are not plain, and for malformed
  /// offsets.
  bool find(int64_t row, Range* found) const noexcept {
    int64_t start = 0;
    int64_t end = 0;
    if (!is_plain_) return false;
    if (small_) {
      start = (*small_)[row];
      end = (*small_)[row + 1];
    } else if (large_) {
      start = (*large_)[row];
      end = (*large_)[row + 1];
    } else {
      return false;
    }
    if (start < 0 || start > end || end > item_count_) return false;
    *found = {start, end - start};
    return true;
  }
  /// Begins to fetch what `find` reads.
  void fetch(int64_t row) const noexcept;

 private:
  std::optional<ElementReader<int32_t>> small_;
  std::optional<ElementReader<int64_t>> large_;
  int64_t item_count_;
  bool is_plain_;
};

/// The columns of an array, and the items of the packed ones.
struct SequenceSource {
  int64_t length = 0;
  std::vector<DeviceArray> columns;
  std::vector<DeviceArray> items;  ///< empty arrays for columns that are not packed
  std::vector<ListOffsets> lists;  ///< of the packed columns
  /// Where the items of each row that was read start, in `length` rows for each packed column.
  std::vector<int64_t> starts;

  /// The starts of packed column number `packed`.
  const int64_t* find_starts(std::size_t packed) const noexcept {
    return starts.data() + packed * static_cast<std::size_t>(length);
  }
};

/// Checks rows and divides them into pieces. Where a call raises, the same row is next again.
class SequenceReader {
 public:
  /// `layout` must outlive the reader.
  SequenceReader(RowReader reader, const BlockLayout& layout, const PackOptions& options);

  /// Goes on to the next row with values, unless the current one has values left. Returns false at
  /// the end.
  bool advance();
  /// Appends the next values of the row, at most `most`, to `pieces`. Returns their number.
  int64_t take(int64_t most, std::vector<Piece>* pieces);
  /// Whether the current row has values left.
  bool is_inside_row() const noexcept { return left_ > 0; }
  /// The next value of the current row, or the row after it. `block` is 0.
  PackPosition position() const noexcept;

  /// The arrays that pieces refer to.
  const std::vector<SequenceSource>& sources() const noexcept { return sources_; }
  /// Forgets the arrays of earlier pieces.
  void forget_sources();

 private:
  bool open_sources();
  SequenceSource open_source(const DeviceArray& rows) const;
  void find_row() noexcept;
  void fetch_row(RowIndex at) const noexcept;
  int64_t measure_row();
  int64_t measure_column(std::size_t packed);
  Range check_list(std::size_t packed) const;
  void check_first_value(int64_t length) const;
  /// The number of the next row, counted from the start of the whole source.
  int64_t next_number() const noexcept { return first_row_ + next_row_; }

  RowReader reader_;
  const BlockLayout& layout_;
  LongSequence longer_;
  int64_t first_value_;  ///< of the first row; 0 once it is read
  std::vector<SequenceSource> sources_;
  // The last rows that were read, of one or more sources:
  PermutedRows upcoming_;  ///< the next ones, until their sources are open
  PermutedRows rows_;      ///< their order; empty if they are those of one source, in order
  std::size_t first_source_ = 0;
  int64_t first_row_;  ///< counted from the start of the whole source
  int64_t count_ = 0;
  int64_t next_row_ = 0;
  RowIndex place_{};   ///< of the row that was measured last, in `sources_`
  int64_t row_;        ///< the current row, counted from the start of the whole source
  int64_t start_ = 0;  ///< the next value of the current row
  int64_t left_ = 0;   ///< values of the current row
};

ARROWDL_END_NAMESPACE
