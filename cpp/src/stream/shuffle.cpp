// Shuffles the rows of a stream within windows.
#include <algorithm>
#include <numeric>
#include <random>

#include "array/host_access.hpp"
#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/row_numbers.hpp"
#include "compute/take.hpp"
#include "schema/copy_schema.hpp"
#include "stream/row_reader.hpp"
#include "util/reserve.hpp"

namespace arrowdl {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 32;

/// std::mt19937_64 and std::seed_seq give the same numbers everywhere; the distributions of the
/// standard library do not.
std::mt19937_64 make_engine(uint64_t seed, uint64_t window) {
  std::seed_seq sequence{seed, seed >> 32, window, window >> 32};
  return std::mt19937_64(sequence);
}

/// A number below `bound`, which is at most 2^32. The bias is at most bound / 2^32.
uint32_t draw_below(std::mt19937_64& engine, uint64_t bound) {
  return static_cast<uint32_t>(((engine() >> 32) * bound) >> 32);
}

/// Fisher and Yates.
template <typename T>
void permute_items(std::vector<T>* items, uint64_t seed, uint64_t window) {
  std::mt19937_64 engine = make_engine(seed, window);
  for (std::size_t i = items->size(); i > 1; --i) {
    std::swap((*items)[i - 1], (*items)[draw_below(engine, i)]);
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
    is_on_device_ = are_read_by_kernels(parts_, "shuffle rows");
    // Several dictionaries become one for all rows.
    if (has_dictionary(parts_.front().type())) parts_ = {concatenate(parts_)};
    reserve(&order_, std::accumulate(parts_.begin(), parts_.end(), int64_t{0},
                                     [](int64_t rows, const DeviceArray& part) {
                                       return rows + part.length();
                                     }));
    for (uint32_t source = 0; source < parts_.size(); ++source) {
      const auto length = static_cast<uint32_t>(parts_[source].length());
      for (uint32_t row = 0; row < length; ++row) order_.push_back({source, row});
      bytes_ += parts_[source].nbytes();
    }
    permute_items(&order_, seed, number);
    if (is_on_device_) numbers_ = number_rows(parts_, {order_.data(), length()});
  }

  bool is_on_device() const noexcept { return is_on_device_; }

  /// Rows that have not been taken.
  int64_t left() const noexcept { return length() - position_; }
  /// About how many rows take `bytes`.
  int64_t count_rows_of(int64_t bytes) const noexcept {
    return bytes / std::max<int64_t>(1, bytes_ / length());
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
    return DeviceArray::import(schema, std::move(taken));
  }

 private:
  int64_t length() const noexcept { return static_cast<int64_t>(order_.size()); }

  std::vector<DeviceArray> parts_;
  std::vector<RowIndex> order_;
  DeviceArray numbers_;  // `order_` on the device
  bool is_on_device_ = false;
  int64_t position_ = 0;
  int64_t bytes_ = 0;
};

class Shuffle final : public ArrayStream {
 public:
  Shuffle(RowReader reader, int64_t buffer_size, uint64_t seed, uint64_t first_window)
      : ArrayStream(reader.schema(), reader.device_type()),
        reader_(std::move(reader)),
        buffer_size_(buffer_size),
        seed_(seed),
        number_(first_window) {}

  DeviceArray next(int64_t max_rows) override {
    if (!block_ && !take_block(max_rows)) return {};
    const int64_t count = std::min(block_.length(), max_rows);
    DeviceArray rows = block_.slice(0, count);
    block_ = count < block_.length() ? block_.slice(count, block_.length() - count) : DeviceArray();
    return rows;
  }

 private:
  /// Takes the next rows of the window: a few times `max_rows`, so that gathering works column by
  /// column in the cache, but not the whole window, whose memory would be new each time.
  bool take_block(int64_t max_rows) {
    if (window_.left() == 0 && !open_window()) return false;
    constexpr int64_t kBlockBytes = 4 << 20;
    constexpr int64_t kBlockBytesOfDevice = 64 << 20;  // launches take longer than calls
    const int64_t bytes = window_.is_on_device() ? kBlockBytesOfDevice : kBlockBytes;
    const int64_t wanted = std::max(max_rows, window_.count_rows_of(bytes) / max_rows * max_rows);
    block_ = window_.take(std::min(window_.left(), wanted), schema());
    if (window_.left() == 0) window_ = Window();
    return true;
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
  DeviceArray block_;
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

}  // namespace arrowdl
