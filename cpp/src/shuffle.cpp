#include <algorithm>
#include <numeric>
#include <random>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "host_access.hpp"
#include "take_rows.hpp"

namespace arrowdl {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 32;

/// std::mt19937_64 and std::seed_seq give the same numbers everywhere; the distributions of the
/// standard library do not.
std::mt19937_64 make_engine(uint64_t seed, uint64_t window) {
  std::seed_seq sequence{seed, seed >> 32, window, window >> 32};
  return std::mt19937_64(sequence);
}

/// A number below `bound`, which is at most 2^32: the upper half of the product is as even as 2^-32
/// of the bound.
uint32_t draw_below(std::mt19937_64& engine, uint64_t bound) {
  return static_cast<uint32_t>(((engine() >> 32) * bound) >> 32);
}

std::vector<uint32_t> permute_window(int64_t count, uint64_t seed, uint64_t window) {
  std::vector<uint32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 engine = make_engine(seed, window);
  for (std::size_t i = order.size(); i > 1; --i) {  // Fisher and Yates
    std::swap(order[i - 1], order[draw_below(engine, i)]);
  }
  return order;
}

class Shuffle final : public ArrayStream {
 public:
  /// `source` gives one window after another.
  Shuffle(OwnedStream source, uint64_t seed, uint64_t first_window)
      : ArrayStream(source->schema(), kDLCPU),
        source_(std::move(source)),
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
  /// The next rows of the window: a few times `max_rows`, so that the columns of one after the
  /// other are in the cache, and not all of them, whose memory would be new each time.
  bool take_block(int64_t max_rows) {
    if (!window_ && !open_window()) return false;
    const int64_t left = window_.length() - position_;
    const int64_t wanted = std::max(max_rows, block_rows_ / max_rows * max_rows);
    const int64_t count = std::min(left, wanted);
    OwnedDeviceArray taken;
    take_rows(window_, {order_.data() + position_, count}).move(&taken->array);
    taken->device_type = ARROW_DEVICE_CPU;
    taken->device_id = -1;
    position_ += count;
    if (position_ == window_.length()) window_ = DeviceArray();
    block_ = DeviceArray::import(schema(), std::move(taken));
    return true;
  }

  bool open_window() {
    do {
      window_ = source_->next();
      if (!window_) return false;
    } while (window_.length() == 0);
    require_host_readable(window_, "shuffle rows");
    order_ = permute_window(window_.length(), seed_, number_++);
    position_ = 0;
    constexpr int64_t kBlockBytes = 4 << 20;
    block_rows_ = kBlockBytes / std::max<int64_t>(1, window_.nbytes() / window_.length());
    return true;
  }

  OwnedStream source_;
  uint64_t seed_;
  uint64_t number_;
  DeviceArray window_;
  std::vector<uint32_t> order_;
  int64_t position_ = 0;
  int64_t block_rows_ = 0;
  DeviceArray block_;
};

}  // namespace

OwnedStream shuffle(OwnedStream&& stream, int64_t window_rows, uint64_t seed,
                    uint64_t first_window) {
  if (window_rows < 1 || window_rows >= kMaxRows) {
    raise_value_error("window_rows=", window_rows, ": shuffle windows of 1 to 2^32 - 1 rows");
  }
  return std::make_unique<Shuffle>(rebatch(std::move(stream), window_rows), seed, first_window);
}

std::vector<uint32_t> permute(int64_t count, uint64_t seed) {
  if (count < 0 || count >= kMaxRows) {
    raise_value_error("count=", count, ": 0 to 2^32 - 1 numbers can be permuted");
  }
  return permute_window(count, seed, 0);
}

}  // namespace arrowdl
