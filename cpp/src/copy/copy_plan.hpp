// What of an array has to be copied, and how the copies make an array again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "copy/copy_ranges.hpp"
#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// One node of a copy.
struct CopyPlan {
  int64_t length = 0;
  int64_t offset = 0;
  int64_t null_count = 0;          ///< -1 when it is not known
  std::vector<CopyRange> buffers;  ///< one without a source stands for an absent buffer
  std::vector<CopyPlan> children;
  std::unique_ptr<CopyPlan> dictionary;
};

/// Plans the copy of arrays into one block of memory. Windows start at row 0 of their copy: pyarrow
/// 26 ignores an offset in the entries of a map, and XLA refuses rows that are not aligned. Only
/// windows with bits that the host cannot read start at a multiple of eight rows, so that no bit
/// has to move.
class CopyPlanner {
 public:
  /// `work` reads from a device what the plan needs to know; nullptr where both devices are the
  /// CPU.
  CopyPlanner(const Device& from, const Device& to, StreamWork* work)
      : from_(from), to_(to), reads_(is_host_readable(from)), work_(work) {}

  /// Plans `window`, its children and its dictionary. Waits on the host for offsets that are on a
  /// device, once for each level of nested lists. Raises ValueError for offsets beyond the values,
  /// BufferError for views on a device.
  CopyPlan plan(const DeviceArray& window);

  /// Bytes of the block.
  int64_t size() const noexcept {
    return ranges_.empty() ? 0 : (ranges_.back().offset + ranges_.back().size + 63) / 64 * 64;
  }
  /// All ranges to copy, by ascending offset in the block.
  const std::vector<CopyRange>& ranges() const noexcept { return ranges_; }

 private:
  using Ends = std::pair<int64_t, int64_t>;
  /// The rows of a window that are copied.
  struct Rows {
    DeviceArray array;
    int64_t null_count = 0;
    bool has_nulls = false;
  };

  Rows select_rows(const DeviceArray& window) const;
  CopyPlan plan_window(const DeviceArray& window);
  CopyRange add_bits(const DeviceArray& array, int64_t i);
  void read_all_ends(const DeviceArray& window);
  void find_lists(const DeviceArray& window, std::vector<DeviceArray>* lists) const;
  void read_ends_of(const std::vector<DeviceArray>& lists);
  int64_t count_nulls(const DeviceArray& window) const;
  CopyRange add_range(const void* source, int64_t size);
  CopyRange add_buffer(const DeviceArray& array, int64_t i);
  void plan_layout(const DeviceArray& array, CopyPlan& node);
  void plan_children(const DeviceArray& array, CopyPlan& node);
  void plan_views(const DeviceArray& array, CopyPlan& node);
  template <typename Offset>
  void plan_offsets(const DeviceArray& array, CopyPlan& node);
  template <typename Offset>
  Ends read_ends(const Offset* offsets, int64_t length) const;
  template <typename Offset>
  const Offset* rebase(const Offset* offsets, int64_t count);

  const Device from_;
  const Device to_;
  const bool reads_;  ///< whether the host can read the source
  StreamWork* const work_;
  std::map<std::pair<const void*, int64_t>, Ends> ends_;  ///< by offsets and rows; on devices
  int64_t next_ = 0;                                      ///< where the next range begins
  std::vector<CopyRange> ranges_;
  std::vector<std::shared_ptr<const void>> rebased_;  ///< offsets and bits that ranges_ refers to
};

ARROWDL_END_NAMESPACE
