// Reads the rows of a stream as sequences of values.
#include "stream/sequence_reader.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "arrowdl/error.hpp"
#include "util/bit_util.hpp"

namespace arrowdl {
namespace {

/// The rows that are asked for at a time: a few, since streams gather as many rows at once.
constexpr int64_t kRows = 256;

bool has_nulls_in(const DeviceArray& items, Range range) {
  if (range.length == 0) return false;
  const uint8_t* bits = items.validity();
  if (bits != nullptr && has_unset_bits(bits, items.offset() + range.start, range.length)) {
    return true;
  }
  if (items.type().layout != Layout::kFixedSizeList) return false;
  const int64_t size = items.type().list_size;
  return has_nulls_in(items.child(0), {range.start * size, range.length * size});
}

std::string quote_name(const SequenceSource& source, int64_t column) {
  return concat("\"", source.columns[static_cast<std::size_t>(column)].type().name(), "\"");
}

}  // namespace

Range find_items(const SequenceSource& source, std::size_t column, const Piece& piece) {
  const Range list = read_list(source.columns[column], piece.row, source.items[column].length());
  return {list.start + piece.start, piece.length};
}

SequenceReader::SequenceReader(RowReader reader, const BlockLayout& layout,
                               const PackOptions& options)
    : reader_(std::move(reader)),
      layout_(layout),
      longer_(options.longer),
      first_value_(options.from.value),
      first_row_(options.from.row) {}

bool SequenceReader::open_source() {
  const DeviceArray rows = reader_.read_part(kRows);
  if (!rows) return false;
  rows.synchronize();
  SequenceSource source;
  for (std::size_t i = 0; i < layout_.padding.size(); ++i) {
    source.columns.push_back(rows.field(static_cast<int64_t>(i)));
    source.items.push_back(layout_.is_packed(i) ? source.columns[i].child(0) : DeviceArray());
  }
  sources_.push_back(std::move(source));
  first_row_ += source_length_;
  source_length_ = rows.length();
  next_row_ = 0;
  return true;
}

bool SequenceReader::advance() {
  while (rest_.length == 0) {
    if (next_row_ == source_length_ && !open_source()) {
      check_first_value(0);
      return false;
    }
    const int64_t length = measure_row(sources_.back());
    check_first_value(length);
    rest_ = {sources_.size() - 1, next_row_, first_value_, length - first_value_};
    first_value_ = 0;
    ++next_row_;
  }
  return true;
}

Piece SequenceReader::peek(int64_t most) const noexcept {
  Piece piece = rest_;
  piece.length = std::min(piece.length, most);
  return piece;
}

void SequenceReader::skip(int64_t length) noexcept {
  rest_.start += length;
  rest_.length -= length;
}

PackPosition SequenceReader::position() const noexcept {
  if (is_inside_row()) return {first_row_ + rest_.row, rest_.start, 0};
  return {first_row_ + next_row_, first_value_, 0};
}

void SequenceReader::forget_sources() {
  const bool is_used_up = next_row_ == source_length_ && !is_inside_row();
  sources_.erase(sources_.begin(), sources_.end() - (is_used_up ? 0 : 1));
  rest_.source = 0;
}

/// The number of values of row `next_row_` that are packed. Checks all packed columns.
int64_t SequenceReader::measure_row(const SequenceSource& source) const {
  const int64_t length = measure_column(source, layout_.tokens);
  for (const int64_t column : layout_.packed) {
    if (column == layout_.tokens) continue;
    const int64_t other = measure_column(source, column);
    if (other == length) continue;
    raise_value_error("row ", first_row_ + next_row_, " has ", length, " items in ",
                      quote_name(source, layout_.tokens), " and ", other, " in ",
                      quote_name(source, column),
                      ", which are packed together: name the columns with an item for each token "
                      "in aligned=, or leave this one out with select()");
  }
  if (length <= layout_.length || longer_ == LongSequence::kSplit) return length;
  if (longer_ == LongSequence::kTruncate) return layout_.length;
  if (longer_ == LongSequence::kDrop) return 0;
  raise_value_error("row ", first_row_ + next_row_, " has ", length, " items in ",
                    quote_name(source, layout_.tokens), ", and a block has ", layout_.length,
                    ": give long=\"split\", \"truncate\" or \"drop\", or a larger length");
}

int64_t SequenceReader::measure_column(const SequenceSource& source, int64_t column) const {
  const DeviceArray& lists = source.columns[static_cast<std::size_t>(column)];
  const DeviceArray& items = source.items[static_cast<std::size_t>(column)];
  const bool is_null = !RowValidity(lists)[next_row_];
  const Range range = is_null ? Range{} : read_list(lists, next_row_, items.length());
  if (is_null || has_nulls_in(items, range)) {
    raise_value_error("row ", first_row_ + next_row_, " of column ", quote_name(source, column),
                      is_null ? " is null" : " has null items",
                      ", which cannot be packed: fill the nulls, or filter the row out");
  }
  return range.length;
}

/// A stream that starts at another row than `PackOptions::from` says would repeat or lose values.
void SequenceReader::check_first_value(int64_t length) const {
  if (first_value_ == 0 || first_value_ < length) return;
  raise_value_error("resume_from= is at value ", first_value_, " of row ", first_row_ + next_row_,
                    ", which has ", length,
                    " items: this stream has to start at that row of the "
                    "rows that were packed, with the same options");
}

}  // namespace arrowdl
