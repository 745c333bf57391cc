// Copies arrays and tensors between devices.
#include <memory>
#include <utility>

#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/tensor_view.hpp"
#include "copy/copy_plan.hpp"
#include "copy/copy_ranges.hpp"
#include "copy/staging_pool.hpp"
#include "sync/stream_work.hpp"
#include "util/copy_bytes.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// New memory on a device, and the arrays that it will hold.
class Target {
 public:
  explicit Target(int64_t size) { owner_ = Buffer::allocate(size, &memory_).owner(); }
  Target(const Device& to, int64_t size, StreamWork& work, const Allocator& allocator) {
    if (to.type == kDLCPU) {
      owner_ = Buffer::allocate(size, &memory_).owner();
      work.hold(owner_);
    } else if (to.type == kDLCUDAHost || to.type == kDLROCMHost) {
      std::shared_ptr<uint8_t> block = StagingPool::get().lend(work.memory(), to, size);
      memory_ = block.get();
      owner_ = std::move(block);
      work.hold(owner_);
    } else {
      const std::shared_ptr<DeviceMemory> memory = work.allocate(to, size, allocator);
      memory_ = memory->address();
      owner_ = memory;
    }
  }

  uint8_t* address() const noexcept { return memory_; }

  OwnedArray make(const CopyPlan& plan) const {
    ArrayParts parts;
    parts.length = plan.length;
    parts.offset = plan.offset;
    parts.null_count = plan.null_count;
    for (const CopyRange& range : plan.buffers) parts.buffers.push_back(make_buffer(range));
    for (const CopyPlan& child : plan.children) parts.children.push_back(make(child));
    if (plan.dictionary != nullptr) parts.dictionary = make(*plan.dictionary);
    return make_array(std::move(parts));
  }

 private:
  Buffer make_buffer(const CopyRange& range) const {
    if (range.source == nullptr) return Buffer();
    return Buffer(owner_, memory_ + range.offset, range.size);
  }

  uint8_t* memory_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// `array`, which the host can read, labelled as CPU memory. Waits for its event.
DeviceArray relabel(const DeviceArray& array) {
  array.synchronize();
  record_default_stream(array);  // a framework sees that the memory is pinned
  return DeviceArray::import(array.export_schema(), share_array(array));
}

DeviceArray duplicate_on_host(const DeviceArray& array) {
  array.synchronize();
  CopyPlanner planner(Device{}, Device{}, nullptr);
  const CopyPlan plan = planner.plan(array);
  const Target target(planner.size());
  for (const CopyRange& range : planner.ranges()) {
    copy_bytes(target.address() + range.offset, static_cast<const uint8_t*>(range.source),
               range.size);
  }
  return DeviceArray::import(array.export_schema(), target.make(plan));
}

/// Copies by `memory` on a stream of the device `at`, which is not the CPU.
DeviceArray copy_by(MemoryOps& memory, const Device& at, const DeviceArray& array,
                    const Device& device, const CopyOptions& options) {
  const Device from = array.device();
  StreamWork work(memory, at, options.stream, options.stream_owner);
  work.hold(array.storage());
  wait_event(at, work.stream(), array.sync_event());  // handles of streams are of one device
  CopyPlanner planner(from, device, &work);
  const CopyPlan plan = planner.plan(array);
  const Target target(device, planner.size(), work, options.allocator);
  OwnedArray copied = target.make(plan);
  if (device.type == kDLCPU) {
    copy_ranges_to_host(work, from, target.address(), planner.ranges(), options.pin);
    return DeviceArray::import(array.export_schema(), std::move(copied));
  }
  copy_ranges(work, from, device, target.address(), planner.ranges(), options.pin);
  const DeviceArray result =
      DeviceArray::import(array.export_schema(), std::move(copied), device, work.record());
  if (options.stream) result.record_stream(*options.stream, options.stream_owner);
  if (!options.non_blocking) result.synchronize();
  return result;
}

/// Whether `memory` copies every buffer of `array`: they may be of several allocators.
bool can_copy(MemoryOps& memory, const DeviceArray& array, const Device& to) {
  if (!memory.can_copy(array.device(), to, nullptr)) return false;
  for (int64_t i = 0; i < array.buffer_count(); ++i) {
    if (array.buffer(i) != nullptr && !memory.can_copy(array.device(), to, array.buffer(i))) {
      return false;
    }
  }
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    if (!can_copy(memory, array.child(static_cast<int64_t>(i)), to)) return false;
  }
  return array.type().dictionary == nullptr || can_copy(memory, array.dictionary(), to);
}

}  // namespace

DeviceArray copy_array(const DeviceArray& array, const Device& device, const CopyOptions& options) {
  const Device from = array.device();
  if (from == device) return array;
  if (device.type == kDLCPU && is_host_readable(from)) return relabel(array);
  const Device& at = device.type == kDLCPU ? from : device;
  MemoryOps& memory = require_memory(at, "copy");
  const bool is_of_two_runtimes = from.type != kDLCPU && &require_memory(from, "copy") != &memory;
  if (is_of_two_runtimes || !can_copy(memory, array, device)) {
    return copy_array(copy_array(array, Device{}), device, options);
  }
  return copy_by(memory, at, array, device, options);
}

DeviceArray copy_array(const DeviceArray& array, const Device& device) {
  return copy_array(array, device, CopyOptions{});
}

DeviceArray duplicate(const DeviceArray& array) {
  const Device device = array.device();
  if (device.type == kDLCPU) return duplicate_on_host(array);
  MemoryOps& memory = require_memory(device, "copy");
  if (!memory.can_copy(device, device, nullptr)) {
    raise_buffer_error("memory cannot be copied on ", to_string(device),
                       ": copy the array to the CPU instead");
  }
  return copy_by(memory, device, array, device, {});
}

void copy_tensor(OwnedTensor source, const DLTensor& target, StreamHandle stream) {
  const TensorView from = view_tensor(source);
  const TensorView to = view_tensor(target);
  StreamWork work(require_memory(to.device, "copy"), to.device, stream, {});
  work.hold(std::make_shared<OwnedTensor>(std::move(source)));
  if (from.size() == 0) return;
  copy_ranges(work, Device{}, to.device, const_cast<uint8_t*>(to.data),
              {{from.data, from.nbytes(), 0}}, true);
}

ARROWDL_END_NAMESPACE
