#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "copy/copy_ranges.hpp"
#include "sync/stream_work.hpp"
#include "util/overflow.hpp"

namespace arrowdl {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kViewBytes = 16;

int64_t bytes_of_bits(int64_t bits) { return (bits + 7) / 8; }

/// One node of the copy. A piece without a source is no buffer.
struct Plan {
  int64_t length = 0;
  int64_t offset = 0;
  int64_t null_count = 0;
  std::vector<CopyRange> buffers;
  std::vector<Plan> children;
  std::unique_ptr<Plan> dictionary;
};

[[noreturn]] void raise_bad_offsets(const DeviceArray& array, int64_t first, int64_t last) {
  raise_value_error("the offsets of an array of ", to_string(array.type()), " go from ", first,
                    " to ", last, ", beyond its values");
}

/// What has to be copied, for the layouts one by one. Windows of bits start at a multiple of eight
/// rows, so that they need no shift; others have no offset, which pyarrow 26 does not look for in
/// the entries of a map.
class Planner {
 public:
  /// `transfer` does what has to be done on a device; null where both are the CPU.
  Planner(const Device& from, const Device& to, StreamWork* transfer)
      : from_(from), to_(to), transfer_(transfer) {}

  int64_t size() const noexcept { return size_; }
  /// All of them, in the order of their positions.
  const std::vector<CopyRange>& pieces() const noexcept { return pieces_; }

  Plan plan(const DeviceArray& window) {
    const Type& type = window.type();
    Plan node;
    node.null_count = count_nulls(window);
    const bool has_nulls =
        type.has_validity() && node.null_count != 0 && window.validity() != nullptr;
    const bool has_bits = has_nulls || type.layout == Layout::kBoolean;
    const DeviceArray array = window.widened(has_bits ? window.offset() % 8 : 0);
    node.length = window.length();
    node.offset = array.length() - window.length();
    if (type.has_validity()) node.buffers.push_back(has_nulls ? bits(array, 0) : CopyRange{});
    plan_layout(array, node);
    if (type.dictionary != nullptr) {
      node.dictionary = std::make_unique<Plan>(plan(array.dictionary()));
    }
    return node;
  }

 private:
  /// Those of memory that the host cannot read stay unknown, where they are.
  int64_t count_nulls(const DeviceArray& window) const {
    if (window.validity() == nullptr && window.type().has_validity()) return 0;
    if (is_host_readable(from_)) return window.null_count();
    return window.known_null_count();
  }

  CopyRange piece(const void* source, int64_t size) {
    if (source == nullptr || size == 0) return {};
    const int64_t position = size_;
    if (!checked_add(size_, size, &size_) || !checked_add(size_, kAlignment - 1, &size_)) {
      raise_value_error("the sizes and offsets of the array make more bytes than there can be");
    }
    size_ = size_ / kAlignment * kAlignment;
    pieces_.push_back({source, size, position});
    return pieces_.back();
  }

  /// The part of buffer `i` that the rows of `array` take at `width` bytes each.
  CopyRange rows(const DeviceArray& array, int64_t i, int64_t width) {
    if (array.buffer(i) == nullptr) return {};
    return piece(array.buffer_as<uint8_t>(i) + array.offset() * width, array.length() * width);
  }

  CopyRange bits(const DeviceArray& array, int64_t i) {
    if (array.buffer(i) == nullptr) return {};
    return piece(array.buffer_as<uint8_t>(i) + array.offset() / 8, bytes_of_bits(array.length()));
  }

  void plan_layout(const DeviceArray& array, Plan& node) {
    switch (array.type().layout) {
      case Layout::kNull:
        break;
      case Layout::kBoolean:
        node.buffers.push_back(bits(array, 1));
        break;
      case Layout::kFixedWidth:
        node.buffers.push_back(rows(array, 1, array.type().byte_width));
        break;
      case Layout::kBinary:
      case Layout::kList:
        plan_offsets<int32_t>(array, node);
        break;
      case Layout::kLargeBinary:
      case Layout::kLargeList:
        plan_offsets<int64_t>(array, node);
        break;
      case Layout::kBinaryView:
        if (transfer_ == nullptr) return plan_views(array, node);
        raise_buffer_error("an array of ", to_string(array.type()), " cannot be copied from ",
                           to_string(from_), " to ", to_string(to_),
                           ": Arrow does not say where the sizes of its buffers lie on a device; "
                           "cast it to string or binary first");
      case Layout::kListView:
      case Layout::kLargeListView: {
        const int64_t width = array.type().layout == Layout::kListView ? 4 : 8;
        node.buffers.push_back(rows(array, 1, width));
        node.buffers.push_back(rows(array, 2, width));
        plan_children(array, node);
        break;
      }
      case Layout::kSparseUnion:
        node.buffers.push_back(rows(array, 0, 1));
        plan_children(array, node);
        break;
      case Layout::kDenseUnion:
        node.buffers.push_back(rows(array, 0, 1));
        node.buffers.push_back(rows(array, 1, 4));
        plan_children(array, node);
        break;
      case Layout::kRunEndEncoded:
        node.offset = array.offset() + node.offset;  // its children count from the first run on
        plan_children(array, node);
        break;
      case Layout::kFixedSizeList:
      case Layout::kStruct:
        plan_children(array, node);
        break;
    }
  }

  void plan_children(const DeviceArray& array, Plan& node) {
    for (std::size_t i = 0; i < array.type().children.size(); ++i) {
      node.children.push_back(plan(array.child(static_cast<int64_t>(i))));
    }
  }

  void plan_views(const DeviceArray& array, Plan& node) {
    node.buffers.push_back(rows(array, 1, kViewBytes));
    const int64_t last = array.buffer_count() - 1;
    const auto* sizes = array.buffer_as<int64_t>(last);
    for (int64_t i = 2; i < last; ++i) node.buffers.push_back(piece(array.buffer(i), sizes[i - 2]));
    node.buffers.push_back(piece(sizes, (last - 2) * static_cast<int64_t>(sizeof(int64_t))));
  }

  /// Offsets, and what lies between the first and the last of them. Offsets that the host can read
  /// are counted from 0 anew; with others everything before them comes along.
  template <typename Offset>
  void plan_offsets(const DeviceArray& array, Plan& node) {
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
      const auto width = static_cast<int64_t>(sizeof(Offset));
      node.buffers.push_back(piece(offsets, (array.length() + 1) * width));
    }
    if (is_list) {
      node.children.push_back(plan(array.child(0).slice(first, last - first)));
    } else {
      const auto* data = array.buffer_as<uint8_t>(2);
      node.buffers.push_back(data == nullptr ? CopyRange{} : piece(data + first, last - first));
    }
  }

  template <typename Offset>
  std::pair<int64_t, int64_t> read_ends(const Offset* offsets, int64_t length) {
    if (is_host_readable(from_)) return {offsets[0], offsets[length]};
    constexpr auto kWidth = static_cast<int64_t>(sizeof(Offset));
    uint8_t* target;
    transfer_->hold(Buffer::allocate(2 * kWidth, &target).owner());  // outlives an error as well
    MemoryOps& memory = transfer_->memory();
    memory.copy(Device{}, target, from_, offsets, kWidth, transfer_->stream());
    memory.copy(Device{}, target + kWidth, from_, offsets + length, kWidth, transfer_->stream());
    transfer_->wait();
    const auto* ends = reinterpret_cast<const Offset*>(target);
    return {ends[0], ends[1]};
  }

  template <typename Offset>
  const Offset* rebase(const Offset* offsets, int64_t count) {
    if (offsets[0] == 0) return offsets;
    uint8_t* target;
    const Buffer rebased = Buffer::allocate(count * static_cast<int64_t>(sizeof(Offset)), &target);
    if (transfer_ != nullptr) transfer_->hold(rebased.owner());
    rebased_.push_back(rebased.owner());
    auto* values = reinterpret_cast<Offset*>(target);
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<Offset>(offsets[i] - offsets[0]);
    }
    return values;
  }

  const Device from_;
  const Device to_;
  StreamWork* const transfer_;
  int64_t size_ = 0;
  std::vector<CopyRange> pieces_;
  std::vector<std::shared_ptr<const void>> rebased_;  // offsets that are pieces
};

/// New memory on a device, and the arrays that will lie there.
class Target {
 public:
  explicit Target(int64_t size) { owner_ = Buffer::allocate(size, &memory_).owner(); }
  Target(const Device& to, int64_t size, StreamWork& transfer) {
    if (to.type == kDLCPU) {
      owner_ = Buffer::allocate(size, &memory_).owner();
      transfer.hold(owner_);
    } else {
      const std::shared_ptr<DeviceMemory> memory = transfer.allocate(to, size);
      memory_ = memory->address();
      owner_ = memory;
    }
  }

  uint8_t* address() const noexcept { return memory_; }

  OwnedArray make(const Plan& plan) const {
    ArrayParts parts;
    parts.length = plan.length;
    parts.offset = plan.offset;
    parts.null_count = plan.null_count;
    for (const CopyRange& piece : plan.buffers) parts.buffers.push_back(make_buffer(piece));
    for (const Plan& child : plan.children) parts.children.push_back(make(child));
    if (plan.dictionary != nullptr) parts.dictionary = make(*plan.dictionary);
    return make_array(std::move(parts));
  }

 private:
  Buffer make_buffer(const CopyRange& piece) const {
    if (piece.source == nullptr) return Buffer();
    return Buffer(owner_, memory_ + piece.position, piece.size);
  }

  uint8_t* memory_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// `array`, which the host can read, as the CPU's.
DeviceArray relabel(const DeviceArray& array) {
  array.synchronize();
  return DeviceArray::import(array.export_schema(), share_array(array));
}

DeviceArray duplicate_on_host(const DeviceArray& array) {
  array.synchronize();
  Planner planner(Device{}, Device{}, nullptr);
  const Plan plan = planner.plan(array);
  const Target target(planner.size());
  for (const CopyRange& piece : planner.pieces()) {
    std::memcpy(target.address() + piece.position, piece.source,
                static_cast<std::size_t>(piece.size));
  }
  return DeviceArray::import(array.export_schema(), target.make(plan));
}

/// By `memory`, on the device `at`, which is not the CPU.
DeviceArray copy_by(MemoryOps& memory, const Device& at, const DeviceArray& array,
                    const Device& device, const CopyOptions& options) {
  const Device from = array.device();
  StreamWork transfer(memory, at, options.stream, options.stream_owner);
  transfer.hold(array.storage());
  wait_event(at, transfer.stream(), array.sync_event());  // a stream's number is of its device
  Planner planner(from, device, &transfer);
  const Plan plan = planner.plan(array);
  const Target target(device, planner.size(), transfer);
  copy_ranges(transfer, from, device, target.address(), planner.pieces(), options.pin);
  OwnedArray copied = target.make(plan);
  if (device.type == kDLCPU) {
    transfer.wait();
    return DeviceArray::import(array.export_schema(), std::move(copied));
  }
  const DeviceArray result =
      DeviceArray::import(array.export_schema(), std::move(copied), device, transfer.record());
  if (options.stream) result.record_stream(*options.stream, options.stream_owner);
  if (!options.non_blocking) result.synchronize();
  return result;
}

}  // namespace

DeviceArray copy_array(const DeviceArray& array, const Device& device, const CopyOptions& options) {
  const Device from = array.device();
  if (from == device) return array;
  if (device.type == kDLCPU && is_host_readable(from)) return relabel(array);
  const Device& at = device.type == kDLCPU ? from : device;
  MemoryOps& memory = require_memory(at, "copy");
  const bool is_of_two_runtimes = from.type != kDLCPU && &require_memory(from, "copy") != &memory;
  if (is_of_two_runtimes || !memory.can_copy(from, device)) {
    return copy_array(copy_array(array, Device{}), device, options);
  }
  return copy_by(memory, at, array, device, options);
}

DeviceArray duplicate(const DeviceArray& array) {
  const Device device = array.device();
  if (device.type == kDLCPU) return duplicate_on_host(array);
  MemoryOps& memory = require_memory(device, "copy");
  if (!memory.can_copy(device, device)) {
    raise_buffer_error("memory cannot be copied on ", to_string(device),
                       ": copy the array to the CPU instead");
  }
  return copy_by(memory, device, array, device, {});
}

}  // namespace arrowdl
