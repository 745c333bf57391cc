// Plans copies of arrays, layout by layout.
#include "copy/copy_plan.hpp"

#include <cstring>
#include <optional>
#include <tuple>

#include "array/row_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "copy/staging_pool.hpp"
#include "memory/buffer_arena.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Host memory for copies from `from` on the stream of `work`, which keeps it: pinned, where the
/// runtime can pin memory, so that a copy does not wait.
class HostBlock {
 public:
  HostBlock(StreamWork& work, const Device& from, int64_t size);

  uint8_t* address() const noexcept { return address_; }
  int64_t size() const noexcept { return size_; }
  /// What `MemoryOps::copy` takes: of the pinned memory, or the CPU.
  const Device& device() const noexcept { return device_; }

 private:
  const int64_t size_;
  Device device_;
  uint8_t* address_ = nullptr;
};

HostBlock::HostBlock(StreamWork& work, const Device& from, int64_t size) : size_(size) {
  std::shared_ptr<const void> owner;
  const std::optional<Device> pinned = work.memory().find_pinned(from);
  if (pinned && size <= StagingPool::kMaxBlock) {
    if (std::shared_ptr<uint8_t> block = StagingPool::get().take(work.memory(), *pinned, size)) {
      device_ = *pinned;
      address_ = block.get();
      owner = std::move(block);
    }
  }
  if (owner == nullptr) owner = Buffer::allocate(size, &address_).owner();
  work.hold(std::move(owner));
}

[[noreturn]] void raise_bad_offsets(const DeviceArray& array, int64_t first, int64_t last) {
  raise_value_error("the offsets of an array of ", to_string(array.type()), " go from ", first,
                    " to ", last, ", beyond its values");
}

void check_ends(const DeviceArray& array, int64_t first, int64_t last) {
  const bool is_list = !array.type().children.empty();
  if (first < 0 || last < first || (is_list && last > array.child(0).length())) {
    raise_bad_offsets(array, first, last);
  }
}

}  // namespace

CopyPlan CopyPlanner::plan(const DeviceArray& window) {
  if (!reads_) read_all_ends(window);
  return plan_window(window);
}

CopyPlanner::Rows CopyPlanner::select_rows(const DeviceArray& window) const {
  const Type& type = window.type();
  Rows rows;
  rows.null_count = count_nulls(window);
  rows.has_nulls = type.has_validity() && rows.null_count != 0 && window.validity() != nullptr;
  const bool has_bits = rows.has_nulls || type.layout == Layout::kBoolean;
  rows.array = window.widened(has_bits && !reads_ ? window.offset() % 8 : 0);
  return rows;
}

CopyPlan CopyPlanner::plan_window(const DeviceArray& window) {
  const Type& type = window.type();
  const auto [array, null_count, has_nulls] = select_rows(window);
  CopyPlan node;
  node.null_count = null_count;
  node.length = window.length();
  node.offset = array.length() - window.length();
  if (type.has_validity()) node.buffers.push_back(has_nulls ? add_buffer(array, 0) : CopyRange{});
  plan_layout(array, node);
  if (type.dictionary != nullptr) {
    node.dictionary = std::make_unique<CopyPlan>(plan_window(array.dictionary()));
  }
  return node;
}

/// -1 if the host cannot read the bitmap and the nulls have not been counted.
int64_t CopyPlanner::count_nulls(const DeviceArray& window) const {
  if (window.validity() == nullptr && window.type().has_validity()) return 0;
  return reads_ ? window.null_count() : window.known_null_count();
}

CopyRange CopyPlanner::add_range(const void* source, int64_t size) {
  if (source == nullptr || size == 0) return {};
  const int64_t offset = next_;
  if (!checked_add(offset, size, &next_) || next_ > INT64_MAX / 2) {
    raise_value_error("the sizes and offsets of the array add up to more bytes than int64 counts");
  }
  next_ = BufferArena::pad(next_);  // as in an arena, so that all its buffers are copied at once
  ranges_.push_back({source, size, offset});
  return ranges_.back();
}

/// The part of buffer `i`, of bits or elements, that the rows of `array` take.
CopyRange CopyPlanner::add_buffer(const DeviceArray& array, int64_t i) {
  if (array.buffer(i) == nullptr) return {};
  const Type& type = array.type();
  const BufferKind kind = layout_row(type.layout).buffers[i].kind;
  const bool is_bits = kind == BufferKind::kValidity || kind == BufferKind::kBits;
  if (is_bits && array.offset() % 8 != 0) return add_bits(array, i);
  return add_range(array.buffer_as<uint8_t>(i) + byte_offset(type, i, array.offset()),
                   buffer_size(type, i, array.length()));
}

/// Moves the bits of the rows to bit 0.
CopyRange CopyPlanner::add_bits(const DeviceArray& array, int64_t i) {
  array.synchronize();
  uint8_t* target;
  const int64_t size = bitmap_size(array.length());
  const Buffer moved = Buffer::allocate(size, &target);
  copy_bits(array.buffer_as<uint8_t>(i), array.offset(), array.length(), target);
  if (work_ != nullptr) work_->hold(moved.owner());
  rebased_.push_back(moved.owner());
  return add_range(target, size);
}

void CopyPlanner::plan_layout(const DeviceArray& array, CopyPlan& node) {
  const LayoutRow& row = layout_row(array.type().layout);
  if (row.is_variadic) return plan_views(array, node);
  if (row.has_offsets()) {
    return visit_offset(array.type(),
                        [&](auto zero) { plan_offsets<decltype(zero)>(array, node); });
  }
  for (int64_t i = row.has_validity() ? 1 : 0; i < row.buffer_count; ++i) {
    node.buffers.push_back(add_buffer(array, i));
  }
  // Children of run-end encoding count from the first run on, whatever the window is.
  if (row.layout == Layout::kRunEndEncoded) node.offset += array.offset();
  plan_children(array, node);
}

void CopyPlanner::plan_children(const DeviceArray& array, CopyPlan& node) {
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    node.children.push_back(plan_window(array.child(static_cast<int64_t>(i))));
  }
}

void CopyPlanner::plan_views(const DeviceArray& array, CopyPlan& node) {
  if (work_ != nullptr) {
    raise_buffer_error("an array of ", to_string(array.type()), " cannot be copied from ",
                       to_string(from_), " to ", to_string(to_),
                       ": Arrow does not say where the sizes of its buffers are on a device; "
                       "cast it to string or binary first");
  }
  node.buffers.push_back(add_buffer(array, 1));
  const int64_t last = array.buffer_count() - 1;
  for (int64_t i = 2; i < last; ++i) {
    node.buffers.push_back(add_range(array.buffer(i), read_data_size(array, i - 2)));
  }
  node.buffers.push_back(
      add_range(array.buffer(last), (last - 2) * static_cast<int64_t>(sizeof(int64_t))));
}

/// Copies the offsets and the values between the first and the last one. Offsets that the host can
/// read are rewritten to start at 0; with others all values before the first one are copied too.
template <typename Offset>
void CopyPlanner::plan_offsets(const DeviceArray& array, CopyPlan& node) {
  const bool is_list = !array.type().children.empty();
  int64_t first = 0;
  int64_t last = 0;
  if (array.length() == 0 || array.buffer(1) == nullptr) {
    node.buffers.emplace_back();
  } else {
    const Offset* offsets = array.buffer_as<Offset>(1) + array.offset();
    if (reads_) array.synchronize();
    std::tie(first, last) = read_ends(offsets, array.length());
    check_ends(array, first, last);
    if (reads_) {
      offsets = rebase(offsets, array.length() + 1);
    } else {
      first = 0;
    }
    node.buffers.push_back(add_range(offsets, buffer_size(array.type(), 1, array.length())));
  }
  if (is_list) {
    node.children.push_back(plan_window(array.child(0).slice(first, last - first)));
  } else {
    const auto* data = array.buffer_as<uint8_t>(2);
    node.buffers.push_back(data == nullptr ? CopyRange{} : add_range(data + first, last - first));
  }
}

template <typename Offset>
CopyPlanner::Ends CopyPlanner::read_ends(const Offset* offsets, int64_t length) const {
  if (reads_) return {offsets[0], offsets[length]};
  return ends_.at({offsets, length});
}

/// Reads the first and last offsets of all lists and strings below `window` from the device, level
/// by level: which values of a list are copied depends on its own offsets.
void CopyPlanner::read_all_ends(const DeviceArray& window) {
  std::vector<DeviceArray> level{window};
  while (!level.empty()) {
    std::vector<DeviceArray> lists;
    for (const DeviceArray& one : level) find_lists(one, &lists);
    level.clear();
    if (lists.empty()) return;
    read_ends_of(lists);
    for (const DeviceArray& list : lists) {
      if (list.type().children.empty()) continue;
      visit_offset(list.type(), [&](auto zero) {
        const auto* offsets = list.buffer_as<decltype(zero)>(1) + list.offset();
        const auto [first, last] = read_ends(offsets, list.length());
        check_ends(list, first, last);
        level.push_back(list.child(0).slice(0, last));
      });
    }
  }
}

/// Adds the rows of `window`, or of what it contains, that have offsets.
void CopyPlanner::find_lists(const DeviceArray& window, std::vector<DeviceArray>* lists) const {
  const DeviceArray array = select_rows(window).array;
  const LayoutRow& row = layout_row(array.type().layout);
  if (array.type().dictionary != nullptr) find_lists(array.dictionary(), lists);
  if (row.has_offsets()) {
    if (array.length() > 0 && array.buffer(1) != nullptr) {
      lists->push_back(array);
    } else if (!array.type().children.empty()) {
      find_lists(array.child(0).slice(0, 0), lists);
    }
    return;
  }
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    find_lists(array.child(static_cast<int64_t>(i)), lists);
  }
}

/// Reads the two ends of each in one batch, for which the host waits once.
void CopyPlanner::read_ends_of(const std::vector<DeviceArray>& lists) {
  constexpr int64_t kSlot = sizeof(int64_t);
  MemoryOps& memory = work_->memory();
  std::optional<StreamWork> own;  // a stream of another GPU may not read them
  if (to_.type != kDLCPU && to_.id != from_.id) {
    own.emplace(memory, from_, std::nullopt, nullptr);
    for (const DeviceArray& list : lists) {
      own->hold(list.storage());
      wait_event(from_, own->stream(), list.sync_event());
    }
  }
  StreamWork& work = own ? *own : *work_;
  const HostBlock block(work, from_, static_cast<int64_t>(lists.size()) * 2 * kSlot);
  std::memset(block.address(), 0, static_cast<std::size_t>(block.size()));
  uint8_t* target = block.address();
  for (const DeviceArray& list : lists) {
    const int64_t width = layout_row(list.type().layout).buffers[1].width;
    const uint8_t* first = list.buffer_as<uint8_t>(1) + list.offset() * width;
    for (const uint8_t* end : {first, first + list.length() * width}) {
      memory.copy(block.device(), target, from_, end, width, work.stream());
      target += kSlot;
    }
  }
  work.wait();
  target = block.address();
  for (const DeviceArray& list : lists) {
    visit_offset(list.type(), [&](auto zero) {
      using Offset = decltype(zero);
      Offset ends[2];
      std::memcpy(&ends[0], target, sizeof(Offset));
      std::memcpy(&ends[1], target + kSlot, sizeof(Offset));
      const auto* offsets = list.buffer_as<Offset>(1) + list.offset();
      ends_[{offsets, list.length()}] = {ends[0], ends[1]};
    });
    target += 2 * kSlot;
  }
}

template <typename Offset>
const Offset* CopyPlanner::rebase(const Offset* offsets, int64_t count) {
  if (offsets[0] == 0) return offsets;
  uint8_t* target;
  const Buffer rebased = Buffer::allocate(count * static_cast<int64_t>(sizeof(Offset)), &target);
  if (work_ != nullptr) work_->hold(rebased.owner());
  rebased_.push_back(rebased.owner());
  auto* values = reinterpret_cast<Offset*>(target);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<Offset>(offsets[i] - offsets[0]);
  }
  return values;
}

ARROWDL_END_NAMESPACE
