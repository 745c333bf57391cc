// Work on a stream of a device, and memory that it uses.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arrowdl/allocator.hpp"
#include "arrowdl/backend.hpp"
#include "arrowdl/deferred_release.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"
#include "backends/kernel_blocks.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Memory of a device runtime. Must be idle when destroyed.
class DeviceAllocation {
 public:
  DeviceAllocation(MemoryOps& memory, const Device& device, int64_t size, StreamHandle stream)
      : memory_(memory), device_(device), address_(memory.allocate(device, size, stream)) {}
  /// Memory that `owner` frees.
  DeviceAllocation(MemoryOps& memory, const Device& device, void* address,
                   std::shared_ptr<const void> owner)
      : memory_(memory), device_(device), address_(address), owner_(std::move(owner)) {}
  ~DeviceAllocation() {
    try {
      if (owner_ != nullptr) {  // may free the memory in the current context
        memory_.call_on(device_, [this] { owner_.reset(); });
        return;
      }
      const BorrowedStream idle(memory_, device_);
      memory_.free(device_, address_, idle.get());
    } catch (const std::exception&) {  // the driver has ended, and with it its memory
    }
  }
  DeviceAllocation(const DeviceAllocation&) = delete;
  DeviceAllocation& operator=(const DeviceAllocation&) = delete;

  const Device& device() const noexcept { return device_; }
  uint8_t* address() const noexcept { return static_cast<uint8_t*>(address_); }

 private:
  MemoryOps& memory_;
  const Device device_;
  void* const address_;
  std::shared_ptr<const void> owner_;  ///< nullptr: allocated here
};

/// Memory of an array or a tensor on a device, counted by `live_objects`.
class DeviceMemory : public DeviceAllocation, private Counted {
 public:
  using DeviceAllocation::DeviceAllocation;
};

/// Work on one GPU stream, the caller's or one of ours. Holds the owners of the memory that the
/// work uses until it is done, also after an error.
class StreamWork {
 public:
  /// Raises BufferError for a stream that is not of `device` or is captured into a graph.
  StreamWork(MemoryOps& memory, const Device& device, std::optional<StreamHandle> stream,
             std::shared_ptr<const void> stream_owner);
  ~StreamWork() { release_after(device_, stream_, std::move(held_), std::move(stream_owner_)); }
  StreamWork(const StreamWork&) = delete;
  StreamWork& operator=(const StreamWork&) = delete;

  MemoryOps& memory() const noexcept { return memory_; }
  StreamHandle stream() const noexcept { return stream_; }
  void hold(std::shared_ptr<const void> used) { held_->push_back(std::move(used)); }
  /// Releases an owner after the work so far, before those that are held.
  void release(std::shared_ptr<const void> used) noexcept;
  /// `size` bytes of the device, held until the work is done: of `allocator` if it is not empty,
  /// else of the default allocator. While there is no memory, waits for pending releases, for a
  /// moment.
  std::shared_ptr<DeviceMemory> allocate(const Device& device, int64_t size,
                                         const Allocator& allocator = {});
  OwnedEvent record() const { return OwnedEvent::record(device_, stream_); }
  void wait() const { synchronize_event(device_, record().handle()); }

 private:
  std::shared_ptr<DeviceMemory> allocate_once(const Device& device, int64_t size,
                                              const Allocator& allocator);
  std::shared_ptr<DeviceMemory> allocate_by(const Allocator& allocator, const Device& device,
                                            int64_t size);

  MemoryOps& memory_;
  const Device device_;
  std::optional<BorrowedStream> borrowed_;
  StreamHandle stream_;
  std::shared_ptr<const void> stream_owner_;
  using Held = std::vector<std::shared_ptr<const void>>;
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

/// Work of the kernels of one device, on a stream of ours. All memory that it uses lives until the
/// work is done. Nothing waits but `read`.
class KernelWork {
 public:
  /// Raises BufferError, "cannot `verb` on cuda:0: ...", if the device has no kernels.
  KernelWork(const Device& device, const char* verb);

  const Device& device() const noexcept { return device_; }

  /// Later work waits for `event`, and `owner` lives until it is done.
  void use(std::shared_ptr<const void> owner, EventHandle event);
  /// New memory of the device, which may be part of a result.
  std::shared_ptr<DeviceMemory> allocate(int64_t size) { return work_.allocate(device_, size); }
  /// The same for `count` integers. Raises MemoryError if their size overflows.
  std::shared_ptr<DeviceMemory> allocate_integers(int64_t count);
  /// The address of `numbers` on the device.
  int64_t upload(std::vector<int64_t> numbers);
  void copy(void* target, const void* source, int64_t size) {
    work_.memory().copy(device_, target, device_, source, size, work_.stream());
  }
  /// Waits on the host for the work so far, and returns `count` numbers of the device.
  std::vector<int64_t> read(const void* numbers, int64_t count);

  /// Launches `kernel` for `size` elements. The arguments are addresses and integers of 8 bytes.
  template <typename Target, typename... Args>
  void launch(Kernel kernel, Target target, int64_t size, Args... args) {
    static_assert(sizeof(Target) == 8 && ((sizeof(Args) == 8) && ...), "kernels take 8 bytes each");
    void* arguments[] = {&target, &size, &args...};
    if (size > 0) kernels_.launch(device_, kernel, size, arguments, work_.stream());
  }
  /// The address of kResults zeros, which many threads change.
  int64_t make_results() { return upload(std::vector<int64_t>(kResults)); }
  /// Waits on the host for the work so far, and returns those results.
  std::vector<int64_t> read_results(int64_t results) {
    return read(reinterpret_cast<const void*>(results), kResults);
  }
  KernelOps& kernels() const noexcept { return kernels_; }
  StreamHandle stream() const noexcept { return work_.stream(); }
  /// Keeps the stream valid.
  const std::shared_ptr<BorrowedStream>& stream_owner() const noexcept { return borrowed_; }

  /// An event for the work so far.
  OwnedEvent record() const { return work_.record(); }

 private:
  const Device device_;
  KernelOps& kernels_;
  const std::shared_ptr<BorrowedStream> borrowed_;
  StreamWork work_;
};

/// All of `memory`, as a buffer of `size` bytes.
inline Buffer to_buffer(const std::shared_ptr<DeviceMemory>& memory, int64_t size) {
  return Buffer(memory, memory->address(), size);
}

/// An address as an argument of a kernel.
inline int64_t to_address(const void* memory) noexcept {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
}

/// The largest number of bytes (16, 8, 4, 2 or 1) to which all of `numbers`, addresses and sizes,
/// are aligned.
int64_t find_unit(const std::vector<int64_t>& numbers) noexcept;

ARROWDL_END_NAMESPACE
