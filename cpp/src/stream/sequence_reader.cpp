// Reads the rows of a stream as sequences of values.
#include "stream/sequence_reader.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "arrowdl/error.hpp"
#include "util/bit_util.hpp"
#include "util/copy_bytes.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The rows that are requested at a time: a few, since streams gather that many rows at once.
constexpr int64_t kRows = 256;
/// The number of permuted rows whose offsets are fetched into the cache at the same time.
constexpr int64_t kFetched = 16;

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

bool has_plain_items(const DeviceArray& items) {
  return items.validity() == nullptr &&
         (items.type().layout != Layout::kFixedSizeList || has_plain_items(items.child(0)));
}

std::string quote_name(const SequenceSource& source, std::size_t column) {
  return concat("\"", source.columns[column].type().name(), "\"");
}

}  // namespace

ListOffsets::ListOffsets(const DeviceArray& lists, const DeviceArray& items)
    : item_count_(items.length()),
      is_plain_(lists.validity() == nullptr && has_plain_items(items)) {
  const Layout layout = lists.type().layout;
  if (layout == Layout::kList) small_.emplace(lists, 1);
  if (layout == Layout::kLargeList) large_.emplace(lists, 1);
}

void ListOffsets::fetch(int64_t row) const noexcept {
  if (small_) prefetch_memory(small_->address(row), 1);
  if (large_) prefetch_memory(large_->address(row), 1);
}

SequenceReader::SequenceReader(RowReader reader, const BlockLayout& layout,
                               const PackOptions& options)
    : reader_(std::move(reader)),
      layout_(layout),
      longer_(options.longer),
      first_value_(options.from.value),
      first_row_(options.from.row),
      row_(options.from.row - 1) {}

/// Reads the next rows. Where this raises, they are the next ones again.
bool SequenceReader::open_sources() {
  if (upcoming_.count == 0) upcoming_ = reader_.next_permuted();
  const bool is_permuted = upcoming_.count > 0;
  std::vector<DeviceArray> arrays = upcoming_.arrays;
  if (!is_permuted) {
    arrays.push_back(reader_.peek(kRows));
    if (!arrays.front()) return false;
    arrays.front().synchronize();
  }
  std::vector<SequenceSource> opened;
  for (const DeviceArray& rows : arrays) opened.push_back(open_source(rows));
  // Nothing fails after the rows are read.
  const std::size_t needed = sources_.size() + opened.size();
  if (needed > sources_.capacity()) sources_.reserve(std::max(needed, 2 * sources_.size()));
  const int64_t count = is_permuted ? upcoming_.count : arrays.front().length();
  if (!is_permuted) static_cast<void>(reader_.read(count));
  rows_ = std::exchange(upcoming_, {});
  rows_.arrays.clear();  // the sources have them
  first_source_ = sources_.size();
  std::move(opened.begin(), opened.end(), std::back_inserter(sources_));
  first_row_ += std::exchange(count_, count);
  next_row_ = 0;
  return true;
}

SequenceSource SequenceReader::open_source(const DeviceArray& rows) const {
  SequenceSource source;
  source.length = rows.length();
  for (std::size_t i = 0; i < layout_.padding.size(); ++i) {
    source.columns.push_back(rows.field(static_cast<int64_t>(i)));
    source.items.push_back(layout_.is_packed(i) ? source.columns[i].child(0) : DeviceArray());
  }
  for (const std::size_t column : layout_.packed) {
    source.lists.emplace_back(source.columns[column], source.items[column]);
  }
  source.starts.resize(layout_.packed.size() * static_cast<std::size_t>(rows.length()));
  return source;
}

void SequenceReader::find_row() noexcept {
  const RowIndex found =
      rows_.order.empty() ? RowIndex{0, static_cast<uint32_t>(next_row_)} : rows_[next_row_];
  place_ = {static_cast<uint32_t>(first_source_) + found.source, found.row};
  if (!rows_.order.empty() && next_row_ + kFetched < count_) fetch_row(rows_[next_row_ + kFetched]);
}

/// Begins to fetch what `measure_row` reads and writes of a row.
void SequenceReader::fetch_row(RowIndex at) const noexcept {
  const SequenceSource& source = sources_[first_source_ + at.source];
  source.lists.front().fetch(at.row);
  prefetch_memory(reinterpret_cast<const uint8_t*>(source.find_starts(0) + at.row), 1);
}

bool SequenceReader::advance() {
  while (left_ == 0) {
    if (next_row_ == count_ && !open_sources()) {
      check_first_value(0);
      return false;
    }
    find_row();
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
  pieces->push_back({place_.source, place_.row, start_, length});
  start_ += length;
  left_ -= length;
  return length;
}

PackPosition SequenceReader::position() const noexcept {
  return is_inside_row() ? PackPosition{row_, start_, 0} : PackPosition{row_ + 1, 0, 0};
}

void SequenceReader::forget_sources() {
  const bool is_used_up = next_row_ == count_ && !is_inside_row();
  if (is_used_up) {
    sources_.clear();
    rows_ = {};
  } else {
    sources_.erase(sources_.begin(), sources_.begin() + static_cast<std::ptrdiff_t>(first_source_));
    place_.source -= static_cast<uint32_t>(first_source_);
  }
  first_source_ = 0;
}

/// The number of values of the next row that are packed. Checks all packed columns.
int64_t SequenceReader::measure_row() {
  const int64_t length = measure_column(0);
  for (std::size_t packed = 1; packed < layout_.packed.size(); ++packed) {
    const int64_t other = measure_column(packed);
    if (other == length) continue;
    raise_value_error("row ", next_number(), " has ", length, " items in ",
                      quote_name(sources_[place_.source], layout_.packed[0]), " and ", other,
                      " in ", quote_name(sources_[place_.source], layout_.packed[packed]),
                      ", which are packed together: name the columns with an item for each token "
                      "in aligned=, or leave this one out with select()");
  }
  if (length <= layout_.length || longer_ == LongSequence::kSplit) return length;
  if (longer_ == LongSequence::kTruncate) return layout_.length;
  if (longer_ == LongSequence::kDrop) return 0;
  raise_value_error("row ", next_number(), " has ", length, " items in ",
                    quote_name(sources_[place_.source], layout_.packed[0]), ", and a block has ",
                    layout_.length,
                    ": give long=\"split\", \"truncate\" or \"drop\", or a larger length");
}

/// The number of items of the next row in a packed column. Notes where they start.
int64_t SequenceReader::measure_column(std::size_t packed) {
  SequenceSource& source = sources_[place_.source];
  Range range;
  if (!source.lists[packed].find(place_.row, &range)) range = check_list(packed);
  source.starts[packed * static_cast<std::size_t>(source.length) + place_.row] = range.start;
  return range.length;
}

/// The items of the next row in a packed column. Raises ValueError for nulls and malformed offsets.
Range SequenceReader::check_list(std::size_t packed) const {
  const SequenceSource& source = sources_[place_.source];
  const int64_t row = place_.row;
  const std::size_t column = layout_.packed[packed];
  const DeviceArray& items = source.items[column];
  const bool is_null = !RowValidity(source.columns[column])[row];
  const Range range = is_null ? Range{} : read_list(source.columns[column], row, items.length());
  if (is_null || has_nulls_in(items, range)) {
    raise_value_error("row ", next_number(), " of column ", quote_name(source, column),
                      is_null ? " is null" : " has null items",
                      ", which cannot be packed: fill the nulls, or filter the row out");
  }
  return range;
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
