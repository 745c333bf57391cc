// Takes rows of several streams in turn.
#include <algorithm>

#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/gather.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/rows_on_device.hpp"
#include "compute/through_host.hpp"
#include "schema/make_schema.hpp"
#include "stream/row_reader.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Rows of arrays, in the order of the ranges.
struct InterleavedBlock {
  std::vector<DeviceArray> arrays;
  std::vector<RowRange> ranges;
};

class Interleave final : public BlockStream {
 public:
  Interleave(std::vector<RowReader> readers, int64_t rows, int64_t skip)
      : BlockStream(readers.front().schema(), readers.front().device_type()),
        readers_(std::move(readers)),
        rows_(rows),
        skip_(skip) {}

 private:
  int64_t period() const noexcept { return rows_ + skip_; }

  /// The next rounds, in new memory.
  DeviceArray make_block(int64_t) override {
    if (pending_.ranges.empty()) pending_ = read_rounds(choose_rounds());
    if (pending_.ranges.empty()) return {};
    DeviceArray made = gather_rows(pending_);
    pending_ = {};
    return made;
  }

  /// As many rounds as amortise a gather and fit into the cache. Beyond the first round they are of
  /// rows that are in memory, so that they can be measured: rows may grow from one to the next.
  int64_t choose_rounds() {
    int64_t rounds = kMaxRounds;
    for (RowReader& reader : readers_) {
      const DeviceArray ready = reader.peek(wanted_rounds_ * period());
      if (ready) rounds = std::min(rounds, std::max<int64_t>(1, ready.length() / period()));
    }
    int64_t bytes = count_bytes(rounds);
    while (rounds > 1 && bytes > 2 * kBlockBytes) {
      rounds = std::max<int64_t>(1, rounds * kBlockBytes / bytes);
      bytes = count_bytes(rounds);
    }
    wanted_rounds_ =
        std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(1, bytes / rounds), 1, kMaxRounds);
    return rounds;
  }

  /// The bytes of the next `rounds`, as far as they are in one array of each stream, without what
  /// all rows share, such as dictionaries.
  int64_t count_bytes(int64_t rounds) {
    int64_t bytes = 0;
    for (RowReader& reader : readers_) {
      const DeviceArray ready = reader.peek(rounds * period());
      if (ready) bytes += count_own_bytes(ready);
    }
    return bytes / period() * rows_;
  }

  InterleavedBlock read_rounds(int64_t count) {
    InterleavedBlock block;
    std::vector<std::vector<RowRange>> rounds(static_cast<std::size_t>(count));
    for (RowReader& reader : readers_) {
      int64_t position = 0;
      for (DeviceArray& part : reader.read(count * period())) {
        append_part(&rounds, block.arrays.size(), part.length(), position);
        position += part.length();
        block.arrays.push_back(std::move(part));
      }
    }
    for (const auto& round : rounds) {
      block.ranges.insert(block.ranges.end(), round.begin(), round.end());
    }
    return block;
  }

  /// Divides array `source`, whose rows are the reader's from `position` on, among the rounds.
  void append_part(std::vector<std::vector<RowRange>>* rounds, std::size_t source, int64_t length,
                   int64_t position) const {
    for (int64_t start = 0; start < length;) {
      const int64_t passed = (position + start) % period();
      const bool is_taken = passed < rows_;
      const int64_t count = std::min((is_taken ? rows_ : period()) - passed, length - start);
      if (is_taken) {
        auto& round = (*rounds)[static_cast<std::size_t>((position + start) / period())];
        append_range(&round, source, Range{start, count});
      }
      start += count;
    }
  }

  DeviceArray gather_rows(const InterleavedBlock& block) const {
    std::vector<DeviceArray> arrays = block.arrays;
    Device home;
    if (make_readable(&arrays, &home, "interleave rows")) {
      return take_on_device(copy_schema(*schema()->type.schema), arrays,
                            number_rows(arrays, block.ranges));
    }
    return copy_array(DeviceArray::import(schema(), gather(arrays, block.ranges)), home);
  }

  static constexpr int64_t kMaxRounds = 1024;
  static constexpr int64_t kBlockBytes = 4 << 20;

  std::vector<RowReader> readers_;
  int64_t rows_;
  int64_t skip_;
  int64_t wanted_rounds_ = 1;  ///< of a block, by the sizes of the last rows
  InterleavedBlock pending_;   ///< kept where gathering it fails
};

}  // namespace

OwnedStream interleave(std::vector<OwnedStream>&& streams, int64_t rows, int64_t skip) {
  constexpr int64_t kMost = int64_t{1} << 50;  // that many rounds can be counted
  if (rows < 1 || rows > kMost || skip < 0 || skip > kMost) {
    raise_value_error("rows=", rows, ", skip=", skip,
                      ": each stream gives 1 row or more in turn, and skips 0 or more");
  }
  return std::make_unique<Interleave>(open_readers(std::move(streams), "interleave"), rows, skip);
}

ARROWDL_END_NAMESPACE
