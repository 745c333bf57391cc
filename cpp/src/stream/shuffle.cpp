// Shuffles the rows of a stream within windows.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/row_numbers.hpp"
#include "compute/same_memory.hpp"
#include "compute/take.hpp"
#include "compute/through_host.hpp"
#include "schema/copy_schema.hpp"
#include "stream/block_stream.hpp"
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
  std::array<uint32_t, 64> drawn;  // so many items are fetched at the same time
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
  /// `parts` are not empty.
  Window(std::vector<DeviceArray> parts, uint64_t seed, uint64_t number)
      : parts_(std::move(parts)) {
    // Several dictionaries become one for all rows.
    if (has_dictionary(parts_.front().type()) && !share_dictionaries(parts_)) {
      parts_ = {concatenate(parts_)};
    }
    is_on_device_ = make_readable(&parts_, &home_, "shuffle rows");
    reserve(&order_, std::accumulate(parts_.begin(), parts_.end(), int64_t{0},
                                     [](int64_t rows, const DeviceArray& part) {
                                       return rows + part.length();
                                     }));
    for (uint32_t source = 0; source < parts_.size(); ++source) {
      const auto length = static_cast<uint32_t>(parts_[source].length());
      const std::size_t first = order_.size();
      order_.resize(first + length);
      for (uint32_t row = 0; row < length; ++row) order_[first + row] = {source, row};
      bytes_ += parts_[source].nbytes();
    }
    permute_items(&order_, seed, number);
    if (is_on_device_) numbers_ = number_rows(parts_, {order_.data(), length()});
  }

  /// Rows that have not been taken.
  int64_t left() const noexcept { return length() - position_; }
  /// How many rows to gather at a time: so many that the columns are gathered in the cache, but not
  /// the whole window, whose memory would be new each time.
  int64_t count_block_rows() const noexcept {
    constexpr int64_t kBytes = 4 << 20;
    constexpr int64_t kMostBytes = 32 << 20;
    constexpr int64_t kBytesOfDevice = 64 << 20;
    // A cache line has several elements of a narrow column, and each block loads it again.
    constexpr int64_t kMostBlocks = 4;
    constexpr int64_t kLine = 64;
    if (is_on_device_) return count_rows_of(kBytesOfDevice);  // launches take longer than calls
    const auto columns = static_cast<int64_t>(parts_.front().type().children.size());
    const int64_t rows = count_rows_of(kBytes);
    if (bytes_ >= length() * columns * kLine) return rows;
    return std::max(rows, std::min(count_rows_of(kMostBytes), length() / kMostBlocks));
  }
  DeviceArray take(int64_t count, const std::shared_ptr<const ParsedSchema>& schema) {
    const int64_t first = std::exchange(position_, position_ + count);
    if (is_on_device_) {
      return take_on_device(copy_schema(*schema->type.schema), parts_,
                            numbers_.slice(first, count));
    }
    OwnedDeviceArray taken;
    arrowdl::take(parts_, {order_.data() + first, count}).move(&taken->array);
    taken->device_type = ARROW_DEVICE_CPU;
    taken->device_id = -1;
    return copy_array(DeviceArray::import(schema, std::move(taken)), home_);
  }

 private:
  int64_t length() const noexcept { return static_cast<int64_t>(order_.size()); }

  /// About how many rows take `bytes`.
  int64_t count_rows_of(int64_t bytes) const noexcept {
    return bytes / std::max<int64_t>(1, bytes_ / length());
  }

  std::vector<DeviceArray> parts_;
  std::vector<RowIndex> order_;
  DeviceArray numbers_;  // `order_` on the device
  bool is_on_device_ = false;
  Device home_;  // of the rows that are taken
  int64_t position_ = 0;
  int64_t bytes_ = 0;
};

class Shuffle final : public BlockStream {
 public:
  Shuffle(RowReader reader, int64_t buffer_size, uint64_t seed, uint64_t first_window)
      : BlockStream(reader.schema(), reader.device_type()),
        reader_(std::move(reader)),
        buffer_size_(buffer_size),
        seed_(seed),
        number_(first_window) {}

 private:
  /// Takes the next rows of the window: a multiple of `max_rows`, unless they are the last.
  DeviceArray make_block(int64_t max_rows) override {
    if (window_.left() == 0 && !open_window()) return {};
    const int64_t wanted = std::max(max_rows, window_.count_block_rows() / max_rows * max_rows);
    DeviceArray block = window_.take(std::min(window_.left(), wanted), schema());
    if (window_.left() == 0) window_ = Window();
    return block;
  }

  bool open_window() {
    if (parts_.empty()) parts_ = reader_.read(buffer_size_);
    if (parts_.empty()) return false;
    window_ = Window(parts_, seed_, number_);
    parts_.clear();
    ++number_;
    return true;
  }

  RowReader reader_;
  int64_t buffer_size_;
  uint64_t seed_;
  uint64_t number_;
  std::vector<DeviceArray> parts_;  // of the next window; kept where making it fails
  Window window_;
};

}  // namespace

OwnedStream shuffle(OwnedStream&& stream, int64_t buffer_size, uint64_t seed,
                    uint64_t first_window) {
  if (buffer_size < 1 || buffer_size >= kMaxRows) {
    raise_value_error("buffer_size=", buffer_size, ": the buffer has 1 to 2^32 - 1 rows");
  }
  return std::make_unique<Shuffle>(RowReader(std::move(stream)), buffer_size, seed, first_window);
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
