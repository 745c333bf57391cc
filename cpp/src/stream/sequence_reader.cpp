// Reads the rows of a stream as sequences of values.
#include "stream/sequence_reader.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "arrowdl/error.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
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

std::string quote_name(const SequenceSource& source, std::size_t column) {
  return concat("\"", source.columns[column].type().name(), "\"");
}

}  // namespace

SequenceReader::SequenceReader(RowReader reader, const BlockLayout& layout,
                               const PackOptions& options)
    : reader_(std::move(reader)),
      layout_(layout),
      longer_(options.longer),
      first_value_(options.from.value),
      first_row_(options.from.row),
      row_(options.from.row - 1) {}

bool SequenceReader::open_source() {
  const DeviceArray rows = reader_.peek(kRows);
  if (!rows) return false;
  rows.synchronize();
  SequenceSource source;
  source.length = rows.length();
  for (std::size_t i = 0; i < layout_.padding.size(); ++i) {
    source.columns.push_back(rows.field(static_cast<int64_t>(i)));
    source.items.push_back(layout_.is_packed(i) ? source.columns[i].child(0) : DeviceArray());
  }
  source.starts.resize(layout_.packed.size() * static_cast<std::size_t>(rows.length()));
  // Nothing fails after the rows are read.
  if (sources_.size() == sources_.capacity()) sources_.reserve(2 * sources_.size() + 1);
  static_cast<void>(reader_.read(rows.length()));
  sources_.push_back(std::move(source));
  first_row_ += source_length_;
  source_length_ = rows.length();
  next_row_ = 0;
  return true;
}

bool SequenceReader::advance() {
  while (left_ == 0) {
    if (next_row_ == source_length_ && !open_source()) {
      check_first_value(0);
      return false;
    }
    const int64_t length = measure_row();
    check_first_value(length);
    if (length > 0) {
      row_ = next_number();
      start_ = std::exchange(first_value_, 0);
      left_ = length - start_;
    }
    ++next_row_;
  }
  return true;
}

int64_t SequenceReader::take(int64_t most, std::vector<Piece>* pieces) {
  const int64_t length = std::min(most, left_);
  pieces->push_back({static_cast<uint32_t>(sources_.size() - 1),
                     static_cast<uint32_t>(next_row_ - 1), start_, length});
  start_ += length;
  left_ -= length;
  return length;
}

PackPosition SequenceReader::position() const noexcept {
  return is_inside_row() ? PackPosition{row_, start_, 0} : PackPosition{row_ + 1, 0, 0};
}

void SequenceReader::forget_sources() {
  const bool is_used_up = next_row_ == source_length_ && !is_inside_row();
  sources_.erase(sources_.begin(), sources_.end() - (is_used_up ? 0 : 1));
}

/// The number of values of the next row that are packed. Checks all packed columns.
int64_t SequenceReader::measure_row() {
  const int64_t length = measure_column(0);
  for (std::size_t packed = 1; packed < layout_.packed.size(); ++packed) {
    const int64_t other = measure_column(packed);
    if (other == length) continue;
    raise_value_error("row ", next_number(), " has ", length, " items in ",
                      quote_name(sources_.back(), layout_.packed[0]), " and ", other, " in ",
                      quote_name(sources_.back(), layout_.packed[packed]),
                      ", which are packed together: name the columns with an item for each token "
                      "in aligned=, or leave this one out with select()");
  }
  if (length <= layout_.length || longer_ == LongSequence::kSplit) return length;
  if (longer_ == LongSequence::kTruncate) return layout_.length;
  if (longer_ == LongSequence::kDrop) return 0;
  raise_value_error("row ", next_number(), " has ", length, " items in ",
                    quote_name(sources_.back(), layout_.packed[0]), ", and a block has ",
                    layout_.length,
                    ": give long=\"split\", \"truncate\" or \"drop\", or a larger length");
}

/// The number of items of the next row in a packed column. Notes where they start.
int64_t SequenceReader::measure_column(std::size_t packed) {
  SequenceSource& source = sources_.back();
  const std::size_t column = layout_.packed[packed];
  const DeviceArray& items = source.items[column];
  const bool is_null = !RowValidity(source.columns[column])[next_row_];
  const Range range =
      is_null ? Range{} : read_list(source.columns[column], next_row_, items.length());
  if (is_null || has_nulls_in(items, range)) {
    raise_value_error("row ", next_number(), " of column ", quote_name(source, column),
                      is_null ? " is null" : " has null items",
                      ", which cannot be packed: fill the nulls, or filter the row out");
  }
  source.starts[packed * static_cast<std::size_t>(source_length_) +
                static_cast<std::size_t>(next_row_)] = range.start;
  return range.length;
}

/// A stream that starts at another row than `PackOptions::from` says would repeat or lose values.
void SequenceReader::check_first_value(int64_t length) const {
  if (first_value_ == 0 || first_value_ < length) return;
  raise_value_error("resume_from= is at value ", first_value_, " of row ", next_number(),
                    ", which has ", length,
                    " items: this stream has to start at that row of the rows that were packed, "
                    "with the same options");
}

ARROWDL_END_NAMESPACE
