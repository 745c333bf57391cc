// Takes rows of several streams by their weights.
#include <algorithm>

#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/rows_on_device.hpp"
#include "compute/take.hpp"
#include "compute/through_host.hpp"
#include "schema/make_schema.hpp"
#include "stream/row_reader.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr uint64_t kMostWeight = uint64_t{1} << 62;  // so that progress and weight can be added

/// Which stream each row is of.
class Turns {
 public:
  explicit Turns(std::vector<MixPhase> phases) : phases_(std::move(phases)) { sum_weights(); }

  /// The stream of the next row.
  uint32_t take() {
    while (phase_ + 1 < phases_.size() && row_ == phases_[phase_].rows) {
      row_ = 0;
      ++phase_;
      sum_weights();
    }
    ++row_;
    std::vector<MixShare>& shares = phases_[phase_].shares;
    for (std::size_t i = 0;; ++i) {
      MixShare& share = shares[i];
      share.progress += share.weight;
      if (share.progress < sums_[i]) continue;
      share.progress -= sums_[i];
      return share.stream;
    }
  }

 private:
  void sum_weights() {
    const std::vector<MixShare>& shares = phases_[phase_].shares;
    sums_.assign(shares.size(), 0);
    uint64_t sum = 0;
    for (std::size_t i = shares.size(); i-- > 0;) sums_[i] = sum += shares[i].weight;
  }

  std::vector<MixPhase> phases_;
  std::size_t phase_ = 0;
  int64_t row_ = 0;             // of the phase
  std::vector<uint64_t> sums_;  // of the weights from each share on
};

/// Rows of arrays, in order.
struct MixedBlock {
  std::vector<DeviceArray> arrays;
  std::vector<RowIndex> order;
};

class Mix final : public BlockStream {
 public:
  Mix(std::vector<RowReader> readers, std::vector<MixPhase> phases)
      : BlockStream(readers.front().schema(), readers.front().device_type()),
        readers_(std::move(readers)),
        turns_(std::move(phases)) {}

 private:
  DeviceArray make_block(int64_t) override {
    if (pending_.order.empty()) read_rows(choose_streams());
    if (pending_.order.empty()) return {};
    DeviceArray made = take_rows(pending_);
    pending_ = {};
    return made;
  }

  /// The streams of the next rows: as many rows as amortise a gather and fit into the cache, all of
  /// them in memory, so that they can be measured. None at the end.
  std::vector<uint32_t> choose_streams() {
    std::vector<uint32_t> chosen = choose_ready();
    if (chosen.empty()) return chosen;
    int64_t bytes = count_bytes(chosen);
    while (chosen.size() > 1 && bytes > 2 * kBlockBytes) {
      const int64_t rows = static_cast<int64_t>(chosen.size()) * kBlockBytes / bytes;
      chosen.resize(static_cast<std::size_t>(std::max<int64_t>(1, rows)));
      bytes = count_bytes(chosen);
    }
    const int64_t row_bytes = bytes / static_cast<int64_t>(chosen.size());
    wanted_rows_ = std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(1, row_bytes), 1, kMaxRows);
    return chosen;
  }

  /// The streams of the next rows, up to the first row for which its stream has to read.
  std::vector<uint32_t> choose_ready() {
    constexpr int64_t kUnknown = -1;
    std::vector<int64_t> left(readers_.size(), kUnknown);
    std::vector<uint32_t> chosen;
    Turns turns = turns_;
    while (static_cast<int64_t>(chosen.size()) < wanted_rows_) {
      const uint32_t stream = turns.take();
      if (left[stream] == kUnknown) {
        const DeviceArray ready = readers_[stream].peek(wanted_rows_);
        left[stream] = ready ? ready.length() : 0;
      }
      if (left[stream]-- == 0) break;
      chosen.push_back(stream);
    }
    return chosen;
  }

  std::vector<int64_t> count_rows(const std::vector<uint32_t>& chosen) const {
    std::vector<int64_t> counts(readers_.size());
    for (const uint32_t stream : chosen) ++counts[stream];
    return counts;
  }

  int64_t count_bytes(const std::vector<uint32_t>& chosen) {
    const std::vector<int64_t> counts = count_rows(chosen);
    int64_t bytes = 0;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      if (counts[i] > 0) bytes += count_own_bytes(readers_[i].peek(counts[i]));
    }
    return bytes;
  }

  /// Reads the next row of each of `chosen` into `pending_`.
  void read_rows(const std::vector<uint32_t>& chosen) {
    const std::vector<int64_t> counts = count_rows(chosen);
    std::vector<RowIndex> next(readers_.size());
    MixedBlock block;
    block.order.reserve(chosen.size());
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      if (counts[i] == 0) continue;
      next[i].source = static_cast<uint32_t>(block.arrays.size());
      for (DeviceArray& rows : readers_[i].read(counts[i])) block.arrays.push_back(std::move(rows));
    }
    for (const uint32_t stream : chosen) {
      turns_.take();
      block.order.push_back(next[stream]);
      ++next[stream].row;
    }
    pending_ = std::move(block);
  }

  DeviceArray take_rows(const MixedBlock& block) const {
    const RowIndices order{block.order.data(), static_cast<int64_t>(block.order.size())};
    std::vector<DeviceArray> arrays = block.arrays;
    Device home;
    if (make_readable(&arrays, &home, "mix rows")) {
      return take_on_device(copy_schema(*schema()->type.schema), arrays,
                            number_rows(arrays, order));
    }
    return copy_array(DeviceArray::import(schema(), take(arrays, order)), home);
  }

  static constexpr int64_t kMaxRows = 1 << 16;
  static constexpr int64_t kBlockBytes = 4 << 20;

  std::vector<RowReader> readers_;
  Turns turns_;
  int64_t wanted_rows_ = 256;  ///< of a block, by the sizes of the last rows
  MixedBlock pending_;         ///< kept where gathering it fails
};

void check_phase(const MixPhase& phase, std::size_t streams) {
  if (phase.rows < 0 || phase.shares.empty()) {
    raise_value_error("a phase of ", phase.rows, " rows and ", phase.shares.size(),
                      " shares: it has 0 rows or more, of one share or more");
  }
  uint64_t sum = 0;
  for (std::size_t i = phase.shares.size(); i-- > 0;) {
    const MixShare& share = phase.shares[i];
    if (share.weight < 1 || share.weight > kMostWeight - sum) {
      raise_value_error("weight ", share.weight,
                        ": weights are 1 or more, and their sum is at most 2^62");
    }
    sum += share.weight;
    if (share.stream >= streams || share.progress >= sum) {
      raise_value_error("stream ", share.stream, " of ", streams, " with progress ", share.progress,
                        " of ", sum, ": both count from 0");
    }
  }
}

}  // namespace

OwnedStream mix(std::vector<OwnedStream>&& streams, std::vector<MixPhase> phases) {
  if (phases.empty()) raise_value_error("cannot mix without weights: pass at least one phase");
  for (const MixPhase& phase : phases) check_phase(phase, streams.size());
  return std::make_unique<Mix>(open_readers(std::move(streams), "mix"), std::move(phases));
}

ARROWDL_END_NAMESPACE
