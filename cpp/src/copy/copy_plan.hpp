// What of an array has to be copied, and how the copies make an array again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "copy/copy_ranges.hpp"
#include "sync/stream_work.hpp"

namespace arrowdl {

/// One node of a copy.
struct CopyPlan {
  int64_t length = 0;
  int64_t offset = 0;
  int64_t null_count = 0;          ///< -1 when it is not known
  std::vector<CopyRange> buffers;  ///< one without a source stands for an absent buffer
  std::vector<CopyPlan> children;
  std::unique_ptr<CopyPlan> dictionary;
};

/// Plans the copy of arrays into one block of memory. Windows of bits start at a multiple of eight
/// rows, so that no bit has to move. Other windows start at 0: pyarrow 26 ignores an offset in the
/// entries of a map.
class CopyPlanner {
 public:
  /// `work` reads from a device what the plan needs to know; nullptr where both devices are the
  /// CPU.
  CopyPlanner(const Device& from, const Device& to, StreamWork* work)
      : from_(from), to_(to), work_(work) {}

  /// Plans `window`, its children and its dictionary. Waits on the host for offsets that are on a
  /// device. Raises ValueError for offsets beyond the values, BufferError for views on a device.
  CopyPlan plan(const DeviceArray& window);

  /// Bytes of the block.
  int64_t size() const noexcept { return size_; }
  /// All ranges to copy, by ascending offset in the block.
  const std::vector<CopyRange>& ranges() const noexcept { return ranges_; }

 private:
  int64_t count_nulls(const DeviceArray& window) const;
  CopyRange add_range(const void* source, int64_t size);
  CopyRange add_buffer(const DeviceArray& array, int64_t i);
  void plan_layout(const DeviceArray& array, CopyPlan& node);
  void plan_children(const DeviceArray& array, CopyPlan& node);
  void plan_views(const DeviceArray& array, CopyPlan& node);
  template <typename Offset>
  void plan_offsets(const DeviceArray& array, CopyPlan& node);
  template <typename Offset>
  std::pair<int64_t, int64_t> read_ends(const Offset* offsets, int64_t length);
  template <typename Offset>
  const Offset* rebase(const Offset* offsets, int64_t count);

  const Device from_;
  const Device to_;
  StreamWork* const work_;
  int64_t size_ = 0;
  std::vector<CopyRange> ranges_;
  std::vector<std::shared_ptr<const void>> rebased_;  ///< offsets that ranges_ refers to
};

}  // namespace arrowdl
