// Plans copies of arrays, layout by layout.
#include "copy/copy_plan.hpp"

#include <tuple>
#include <utility>

#include "arrowdl/error.hpp"
#include "schema/layout.hpp"
#include "util/overflow.hpp"

namespace arrowdl {
namespace {

constexpr int64_t kAlignment = 64;

[[noreturn]] void raise_bad_offsets(const DeviceArray& array, int64_t first, int64_t last) {
  raise_value_error("the offsets of an array of ", to_string(array.type()), " go from ", first,
                    " to ", last, ", beyond its values");
}

}  // namespace

CopyPlan CopyPlanner::plan(const DeviceArray& window) {
  const Type& type = window.type();
  CopyPlan node;
  node.null_count = count_nulls(window);
  const bool has_nulls =
      type.has_validity() && node.null_count != 0 && window.validity() != nullptr;
  const bool has_bits = has_nulls || type.layout == Layout::kBoolean;
  const DeviceArray array = window.widened(has_bits ? window.offset() % 8 : 0);
  node.length = window.length();
  node.offset = array.length() - window.length();
  if (type.has_validity()) node.buffers.push_back(has_nulls ? add_buffer(array, 0) : CopyRange{});
  plan_layout(array, node);
  if (type.dictionary != nullptr) {
    node.dictionary = std::make_unique<CopyPlan>(plan(array.dictionary()));
  }
  return node;
}

/// -1 where the host cannot read the bitmap and nobody has counted.
int64_t CopyPlanner::count_nulls(const DeviceArray& window) const {
  if (window.validity() == nullptr && window.type().has_validity()) return 0;
  if (is_host_readable(from_)) return window.null_count();
  return window.known_null_count();
}

CopyRange CopyPlanner::add_range(const void* source, int64_t size) {
  if (source == nullptr || size == 0) return {};
  const int64_t offset = size_;
  if (!checked_add(size_, size, &size_) || !checked_add(size_, kAlignment - 1, &size_)) {
    raise_value_error("the sizes and offsets of the array add up to more bytes than int64 counts");
  }
  size_ = size_ / kAlignment * kAlignment;
  ranges_.push_back({source, size, offset});
  return ranges_.back();
}

/// The part of buffer `i`, of bits or elements, that the rows of `array` take.
CopyRange CopyPlanner::add_buffer(const DeviceArray& array, int64_t i) {
  if (array.buffer(i) == nullptr) return {};
  const Type& type = array.type();
  return add_range(array.buffer_as<uint8_t>(i) + byte_offset(type, i, array.offset()),
                   buffer_size(type, i, array.length()));
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
    node.children.push_back(plan(array.child(static_cast<int64_t>(i))));
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
  const auto* sizes = array.buffer_as<int64_t>(last);
  for (int64_t i = 2; i < last; ++i) {
    node.buffers.push_back(add_range(array.buffer(i), sizes[i - 2]));
  }
  node.buffers.push_back(add_range(sizes, (last - 2) * static_cast<int64_t>(sizeof(int64_t))));
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
    if (is_host_readable(from_)) array.synchronize();
    std::tie(first, last) = read_ends(offsets, array.length());
    if (first < 0 || last < first || (is_list && last > array.child(0).length())) {
      raise_bad_offsets(array, first, last);
    }
    if (is_host_readable(from_)) {
      offsets = rebase(offsets, array.length() + 1);
    } else {
      first = 0;
    }
    node.buffers.push_back(add_range(offsets, buffer_size(array.type(), 1, array.length())));
  }
  if (is_list) {
    node.children.push_back(plan(array.child(0).slice(first, last - first)));
  } else {
    const auto* data = array.buffer_as<uint8_t>(2);
    node.buffers.push_back(data == nullptr ? CopyRange{} : add_range(data + first, last - first));
  }
}

template <typename Offset>
std::pair<int64_t, int64_t> CopyPlanner::read_ends(const Offset* offsets, int64_t length) {
  if (is_host_readable(from_)) return {offsets[0], offsets[length]};
  constexpr auto kWidth = static_cast<int64_t>(sizeof(Offset));
  uint8_t* target;
  work_->hold(Buffer::allocate(2 * kWidth, &target).owner());  // outlives an error as well
  MemoryOps& memory = work_->memory();
  memory.copy(Device{}, target, from_, offsets, kWidth, work_->stream());
  memory.copy(Device{}, target + kWidth, from_, offsets + length, kWidth, work_->stream());
  work_->wait();
  const auto* ends = reinterpret_cast<const Offset*>(target);
  return {ends[0], ends[1]};
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

}  // namespace arrowdl
