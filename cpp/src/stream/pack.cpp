// Packs sequences of values into blocks of one length.
#include "arrowdl/pack.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "array/host_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "stream/block_columns.hpp"
#include "stream/block_layout.hpp"
#include "stream/sequence_reader.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

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

constexpr int64_t kMaxLength = int64_t{1} << 30;
constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max();  // a block has length + 2
constexpr int64_t kMaxWindowValues = int64_t{1} << 32;

/// Plans several blocks, makes arrays of them, and plans the next ones. A plan that an error
/// interrupts goes on where it was.
class Pack final : public ArrayStream {
 public:
  Pack(RowReader reader, BlockLayout layout, const PackOptions& options)
      : ArrayStream(layout.schema, reader.device_type()),
        layout_(std::move(layout)),
        reader_(std::move(reader), layout_, options),
        is_best_fit_(options.strategy == PackStrategy::kBestFit),
        drop_last_(options.drop_last),
        window_values_(is_best_fit_ ? options.buffer_size * options.length : 0),
        window_(options.from.row),
        first_block_(options.from.block),
        best_fit_(options.length) {}

  DeviceArray next(int64_t max_rows) override {
    const int64_t wanted = max_rows == kAnyRows ? layout_.array_length : max_rows;
    const int64_t most = std::min(wanted, kMaxOffset / (layout_.length + 2));
    if (blocks_.empty()) {
      is_best_fit_ ? plan_best_fit() : plan_concat(static_cast<std::size_t>(most));
      if (blocks_.empty()) return {};
    }
    const auto left = static_cast<int64_t>(blocks_.size() - next_);
    const int64_t count = std::min(most, left);
    DeviceArray made = make_blocks(list_blocks(count));
    next_ += static_cast<std::size_t>(count);
    if (count == left) forget_plan();
    return made;
  }

 private:
  // ---------------------------------------------------------------- planning

  /// Plans `most` blocks. `values_` counts those of the last one, until it is full.
  void plan_concat(std::size_t most) {
    while (values_ > 0 || planned_.size() < most) {
      if (values_ == layout_.length) {
        planned_.push_back({pieces_.size(), reader_.position()});
        values_ = 0;
      } else if (reader_.advance()) {
        values_ += reader_.take(layout_.length - values_, &pieces_);
      } else {
        break;
      }
    }
    if (values_ > 0 && !drop_last_) planned_.push_back({pieces_.size(), reader_.position()});
    values_ = 0;
    blocks_.swap(planned_);
  }

  /// Plans the blocks of a window. `values_` counts those of the window.
  void plan_best_fit() {
    while ((values_ < window_values_ || reader_.is_inside_row()) && reader_.advance()) {
      values_ += reader_.take(layout_.length, &pieces_);
    }
    const PackPosition after = reader_.position();
    const bool is_last = drop_last_ && !reader_.advance();
    // At most one block is half empty. Nothing fails between placing and the end.
    planned_.clear();
    planned_.reserve(static_cast<std::size_t>(2 * (values_ / layout_.length) + 2));
    best_fit_.place(&pieces_);
    for (const std::size_t end : best_fit_.ends()) {
      const auto number = static_cast<int64_t>(planned_.size()) + 1;
      planned_.push_back({end, {window_, 0, number}});
    }
    if (is_last && !planned_.empty() && best_fit_.last_padding() > 0) planned_.pop_back();
    if (!planned_.empty()) planned_.back().after = after;
    check_first_block(static_cast<int64_t>(planned_.size()));
    next_ = static_cast<std::size_t>(std::exchange(first_block_, 0));
    blocks_.swap(planned_);
    values_ = 0;
    window_ = after.row;
  }

  void check_first_block(int64_t count) const {
    if (first_block_ == 0 || first_block_ < count) return;
    raise_value_error("resume_from= is at block ", first_block_, " of the window from row ",
                      window_, " on, which has ", count,
                      " blocks: this stream has to start at that row of the rows that were packed, "
                      "with the same options");
  }

  void forget_plan() noexcept {
    pieces_.clear();
    blocks_.clear();
    next_ = 0;
    reader_.forget_sources();
  }

  // ---------------------------------------------------------------- arrays

  Blocks list_blocks(int64_t count) const noexcept {
    const std::size_t first = next_ == 0 ? 0 : blocks_[next_ - 1].end;
    return {pieces_.data() + first, blocks_.data() + next_, first, count, layout_.length};
  }

  DeviceArray make_blocks(const Blocks& blocks) const {
    ArrayParts parts;
    parts.length = blocks.count;
    parts.buffers.push_back(Buffer());
    for (std::size_t i = 0; i < layout_.padding.size(); ++i) {
      parts.children.push_back(make_block_column(layout_, reader_.sources(), i, blocks));
    }
    for (const AddedColumn added : layout_.added) {
      parts.children.push_back(make_added_column(layout_, added, blocks));
    }
    return DeviceArray::import(schema(), make_array(std::move(parts)));
  }

  const BlockLayout layout_;
  SequenceReader reader_;
  const bool is_best_fit_;
  const bool drop_last_;
  const int64_t window_values_;
  int64_t window_;       // the row that the window starts at
  int64_t first_block_;  // of the first window; 0 once that is planned
  BestFit best_fit_;
  std::vector<Piece> pieces_;   // of the plan, or of what is planned so far
  std::vector<Block> planned_;  // of a plan that is not complete
  std::vector<Block> blocks_;   // of the plan; none where there is no plan
  std::size_t next_ = 0;        // of `blocks_`
  int64_t values_ = 0;
};

void check_options(const PackOptions& options) {
  if (options.length < 1 || options.length > kMaxLength) {
    raise_value_error("length=", options.length, ": a block has 1 to 2^30 items");
  }
  const bool is_best_fit = options.strategy == PackStrategy::kBestFit;
  if (options.buffer_size < 1 ||
      (is_best_fit && options.buffer_size > kMaxWindowValues / options.length)) {
    raise_value_error("buffer_size=", options.buffer_size, ", length=", options.length,
                      ": the buffer has 1 block or more, and at most 2^32 items");
  }
  const PackPosition& from = options.from;
  if (from.row < 0 || from.value < 0 || from.block < 0 ||
      (is_best_fit ? from.value : from.block) != 0) {
    raise_value_error("resume_from=(", from.row, ", ", from.value, ", ", from.block,
                      ") is not a position of strategy=\"", is_best_fit ? "best_fit" : "concat",
                      "\": give what a block of the same strategy has in its column resume_from");
  }
}

}  // namespace

OwnedStream pack(OwnedStream&& stream, const PackOptions& options) {
  check_options(options);
  require_host_readable(Device{stream->device_type(), 0}, "pack sequences");
  BlockLayout layout = make_block_layout(stream->schema()->type, options);
  return std::make_unique<Pack>(RowReader(std::move(stream)), std::move(layout), options);
}

ARROWDL_END_NAMESPACE
