// Shuffles the rows of a stream within windows.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>

#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/permute_rows.hpp"
#include "compute/rows_on_device.hpp"
#include "compute/selection.hpp"
#include "compute/take.hpp"
#include "compute/through_host.hpp"
#include "copy/staging_pool.hpp"
#include "schema/make_schema.hpp"
#include "stream/row_reader.hpp"
#include "util/mersenne_twister.hpp"
#include "util/reserve.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 32;

/// std::mt19937_64 and std::seed_seq give the same numbers everywhere; the distributions of the
/// standard library do not.
MersenneTwister make_engine(uint64_t seed, uint64_t window) {
  std::seed_seq sequence{seed, seed >> 32, window, window >> 32};
  return MersenneTwister(sequence);
}

/// A number below `bound`, which is at most 2^32. The bias is at most bound / 2^32.
uint32_t draw_below(MersenneTwister& engine, uint64_t bound) {
  return static_cast<uint32_t>(((engine() >> 32) * bound) >> 32);
}

void prefetch_line([[maybe_unused]] const void* memory) {
#if defined(__GNUC__)
  __builtin_prefetch(memory, 1);
#endif
}

/// Fisher and Yates.
template <typename T>
void permute_items(std::vector<T>* items, uint64_t seed, uint64_t window) {
  MersenneTwister engine = make_engine(seed, window);
  T* const first = items->data();
  std::array<uint32_t, 64> drawn;  // the items that are fetched at the same time
  for (std::size_t i = items->size(); i > 1;) {
    const std::size_t count = std::min(drawn.size(), i - 1);
    for (std::size_t k = 0; k < count; ++k) {
      drawn[k] = draw_below(engine, i - k);
      prefetch_line(first + drawn[k]);
    }
    for (std::size_t k = 0; k < count; ++k) std::swap(first[--i], first[drawn[k]]);
  }
}

bool has_dictionary(const Type& type) {
  return type.dictionary != nullptr ||
         std::any_of(type.children.begin(), type.children.end(), has_dictionary);
}

/// Consecutive rows, and their shuffled order.
class Window {
 public:
  Window() = default;
  /// `parts` are not empty. With `in_place`, their rows may be permuted in their own memory.
  /// `batch_rows` are copied to a device at a time; 0: none.
  Window(std::vector<DeviceArray> parts, uint64_t seed, uint64_t number, bool in_place,
         int64_t batch_rows)
      : parts_(std::move(parts)) {
    // Several dictionaries become one for all rows.
    if (has_dictionary(parts_.front().type()) && !share_dictionaries(parts_)) {
      parts_ = {concatenate(parts_)};
    }
    is_on_device_ = make_readable(&parts_, &home_, "shuffle rows");
    for (const DeviceArray& part : parts_) {
      length_ += part.length();
      bytes_ += part.nbytes();
    }
    is_by_batch_ = home_.type == kDLCPU && !is_on_device_ && !has_narrow_columns() &&
                   std::min(batch_rows, length_) * (bytes_ / length_) >= StagingPool::kMinBlock;
    if (order_numbers(seed, number, in_place)) return;
    reserve(&order_, length_);
    for (uint32_t source = 0; source < parts_.size(); ++source) {
      const auto length = static_cast<uint32_t>(parts_[source].length());
      const std::size_t first = order_.size();
      order_.resize(first + length);
      for (uint32_t row = 0; row < length; ++row) order_[first + row] = {source, row};
    }
    permute_items(&order_, seed, number);
  }

  /// Rows that have not been taken.
  int64_t left() const noexcept { return length_ - position_; }
  /// How many rows to gather at a time: few enough to gather the columns in the cache. The memory
  /// of a whole window would be new each time.
  int64_t count_block_rows() const noexcept {
    constexpr int64_t kBytes = 4 << 20;
    constexpr int64_t kMostBytes = 32 << 20;
    constexpr int64_t kBytesOfDevice = 64 << 20;
    // A cache line has several elements of a narrow column, and each block loads it again.
    constexpr int64_t kMostBlocks = 4;
    if (is_on_device_) return count_rows_of(kBytesOfDevice);  // launches take longer than calls
    const int64_t rows = count_rows_of(kBytes);
    if (!has_narrow_columns()) return rows;
    return std::max(rows, std::min(count_rows_of(kMostBytes), length_ / kMostBlocks));
  }
  /// Pinned memory for the next `rows` rows, which are copied to `to`: of wide columns, since
  /// narrow ones are gathered in large blocks.
  BufferArena make_arena(const std::optional<Device>& to, int64_t rows) const {
    return make_pinned_arena(is_by_batch_ ? to : std::nullopt,
                             parts_.front().type().children.size(),
                             std::min(rows, left()) * (bytes_ / length_ + 1));
  }
  /// The next `count` rows, which were not permuted in place.
  DeviceArray take(int64_t count, const std::shared_ptr<const ParsedSchema>& schema) {
    DeviceArray taken = is_on_device_ ? take_on_device(copy_schema(*schema->type.schema), parts_,
                                                       numbers_.slice(position_, count))
                                      : take_on_host(count, schema);
    position_ += count;  // where that fails, the same rows are next again
    return taken;
  }
  /// The next rows, not copied, except for the last ones: so a caller that still needs some of
  /// these does not hold the window while the next one is read. None if the rows are on a device,
  /// or better copied: rows of many small arrays, and null ones, since not all types of columns can
  /// be read then.
  PermutedRows take_permuted() {
    constexpr std::size_t kFewParts = 64;
    constexpr int64_t kSmallPart = 256;
    constexpr int64_t kMostCopied = 8;  // an eighth
    const bool has_many_parts =
        parts_.size() > kFewParts && length_ < kSmallPart * static_cast<int64_t>(parts_.size());
    if (is_on_device_ || order_.empty() || has_many_parts) return {};
    const auto has_nulls = [](const DeviceArray& part) { return part.has_nulls(); };
    if (std::any_of(parts_.begin(), parts_.end(), has_nulls)) return {};
    const int64_t count = left() - std::min(count_block_rows(), length_ / kMostCopied);
    if (count <= 0) return {};
    PermutedRows rows{parts_, order_, position_, count};
    position_ += count;
    return rows;
  }
  bool is_in_place() const noexcept { return in_place_; }
  /// The next rows, which were permuted in place.
  DeviceArray take_part() {
    DeviceArray& part = parts_[next_part_++];
    position_ += part.length();
    return std::move(part);
  }

 private:
  /// About how many rows take `bytes`.
  int64_t count_rows_of(int64_t bytes) const noexcept {
    return bytes / std::max<int64_t>(1, bytes_ / length_);
  }

  bool has_narrow_columns() const noexcept {
    constexpr int64_t kLine = 64;
    const auto columns = static_cast<int64_t>(parts_.front().type().children.size());
    return bytes_ < length_ * columns * kLine;
  }

  DeviceArray take_on_host(int64_t count, const std::shared_ptr<const ParsedSchema>& schema) {
    OwnedArray rows = order_.empty() ? take_numbered(parts_, row_numbers_.data() + position_, count)
                                     : arrowdl::take(parts_, {order_.data() + position_, count});
    return copy_array(DeviceArray::import(schema, std::move(rows)), home_);
  }

  /// Orders the numbers of the rows through all parts, and permutes the parts in their own memory
  /// if that is allowed and faster than blocks, which fetch the lines of a narrow column from
  /// memory again and again. Returns false if rows are not taken by such numbers.
  bool order_numbers(uint64_t seed, uint64_t number, bool in_place) {
    std::vector<Elements> columns;
    if (in_place && home_.type == kDLCPU && has_narrow_columns() && count_block_rows() < length_) {
      columns = find_elements(parts_);
    }
    in_place_ = !columns.empty();
    const bool takes_most = !is_by_batch_ && 2 * count_block_rows() >= length_;
    const bool is_numbered =
        is_on_device_ || in_place_ || (takes_most && can_take_numbered(parts_));
    if (!is_numbered) return false;
    reserve(&row_numbers_, length_);
    row_numbers_.resize(static_cast<std::size_t>(length_));
    std::iota(row_numbers_.begin(), row_numbers_.end(), 0U);
    permute_items(&row_numbers_, seed, number);
    if (in_place_) permute_rows(parts_, columns, row_numbers_);
    if (is_on_device_) {
      numbers_ = number_rows(parts_.front().device(), std::exchange(row_numbers_, {}));
    }
    return true;
  }

  std::vector<DeviceArray> parts_;
  std::vector<RowIndex> order_;
  std::vector<uint32_t> row_numbers_;  // instead of `order_`: through all parts
  DeviceArray numbers_;                // `row_numbers_` on the device
  bool is_on_device_ = false;
  bool in_place_ = false;
  bool is_by_batch_ = false;  ///< whether batches are gathered one by one, for a device
  Device home_;               // of the rows that are taken
  int64_t length_ = 0;
  int64_t position_ = 0;
  std::size_t next_part_ = 0;
  int64_t bytes_ = 0;
};

class Shuffle final : public BlockStream {
 public:
  Shuffle(RowReader reader, int64_t buffer_size, uint64_t seed, uint64_t first_window,
          bool in_place)
      : BlockStream(reader.schema(), reader.device_type()),
        reader_(std::move(reader)),
        buffer_size_(buffer_size),
        seed_(seed),
        number_(first_window),
        in_place_(in_place) {}

  void gather_for(const Device& device) override { target_ = device; }

  PermutedRows next_permuted() override {
    if (has_block() || (window_.left() == 0 && !open_window(0))) return {};
    PermutedRows rows = window_.take_permuted();
    if (window_.left() == 0) window_ = Window();
    return rows;
  }

 private:
  DeviceArray make_block(int64_t max_rows) override {
    if (window_.left() == 0 && !open_window(target_ ? max_rows : 0)) return {};
    DeviceArray block = window_.is_in_place() ? window_.take_part() : take_rows(max_rows);
    if (window_.left() == 0) window_ = Window();
    return block;
  }

  /// Takes the next rows of the window: a multiple of `max_rows`, unless they are the last.
  DeviceArray take_rows(int64_t max_rows) {
    const BufferArena arena = window_.make_arena(target_, max_rows);
    const int64_t blocks = arena ? 1 : window_.count_block_rows() / max_rows;
    const int64_t wanted = max_rows * std::max<int64_t>(1, blocks);
    return window_.take(std::min(window_.left(), wanted), schema());
  }

  bool open_window(int64_t batch_rows) {
    if (parts_.empty()) parts_ = reader_.read(buffer_size_);
    if (parts_.empty()) return false;
    window_ = Window(parts_, seed_, number_, in_place_, batch_rows);
    parts_.clear();
    ++number_;
    return true;
  }

  RowReader reader_;
  int64_t buffer_size_;
  uint64_t seed_;
  uint64_t number_;
  bool in_place_;
  std::optional<Device> target_;
  std::vector<DeviceArray> parts_;  // of the next window; kept where making it fails
  Window window_;
};

}  // namespace

OwnedStream shuffle(OwnedStream&& stream, int64_t buffer_size, uint64_t seed, uint64_t first_window,
                    bool in_place) {
  if (buffer_size < 1 || buffer_size >= kMaxRows) {
    raise_value_error("buffer_size=", buffer_size, ": the buffer has 1 to 2^32 - 1 rows");
  }
  return std::make_unique<Shuffle>(RowReader(std::move(stream)), buffer_size, seed, first_window,
                                   in_place);
}

std::vector<uint32_t> permute(int64_t count, uint64_t seed) {
  if (count < 0 || count >= kMaxRows) {
    raise_value_error("count=", count, ": 0 to 2^32 - 1 numbers can be permuted");
  }
  std::vector<uint32_t> order;
  reserve(&order, count);
  order.resize(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0U);
  permute_items(&order, seed, 0);
  return order;
}

ARROWDL_END_NAMESPACE
