// Runs the kernels of a device on a stream of arrowdl's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrowdl/backend.hpp"
#include "arrowdl/owned.hpp"
#include "backends/kernel_blocks.hpp"
#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

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
