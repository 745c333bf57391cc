// Packs sequences of values into blocks of one length.
#include "arrowdl/pack.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "array/host_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "stream/block_columns.hpp"
#include "stream/block_layout.hpp"
#include "stream/place_best_fit.hpp"
#include "stream/sequence_reader.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

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
    OwnedDeviceArray made;
    make_array(std::move(parts)).move(&made->array);
    made->device_type = ARROW_DEVICE_CPU;
    made->device_id = -1;
    return DeviceArray::import(schema(), std::move(made));
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
