// Work on a stream of a device, and memory that it uses.
#include "sync/stream_work.hpp"

#include <chrono>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "backends/host_access.hpp"
#include "sync/release_thread.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// What Arrow and arrowdl's kernels rely on.
constexpr uintptr_t kAlignment = 64;

/// The longest that an allocation waits for memory that pending releases may free.
constexpr std::chrono::seconds kPatience{1};

}  // namespace

StreamWork::StreamWork(MemoryOps& memory, const Device& device, std::optional<StreamHandle> stream,
                       std::shared_ptr<const void> stream_owner)
    : memory_(memory), device_(device), stream_owner_(std::move(stream_owner)) {
  if (stream) {
    memory.require_stream_of(device, *stream);
  } else {
    borrowed_.emplace(memory, device);
  }
  stream_ = stream ? *stream : borrowed_->get();
  if (memory.is_capturing(device, stream_)) {
    raise_buffer_error("the stream on ", to_string(device),
                       " is being captured into a graph, which would copy at every launch: copy "
                       "before or after the capture");
  }
  wait_for_release_room();
}

void StreamWork::release(std::shared_ptr<const void> used) noexcept {
  release_after(device_, stream_, std::move(used), stream_owner_);
}

std::shared_ptr<DeviceMemory> StreamWork::allocate(const Device& device, int64_t size,
                                                   const Allocator& allocator) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::shared_ptr<DeviceMemory> memory;
  while (memory == nullptr) {
    try {
      memory = allocate_once(device, size, allocator);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kMemory || !wait_for_release(end)) throw;
    }
  }
  hold(memory);
  return memory;
}

std::shared_ptr<DeviceMemory> StreamWork::allocate_once(const Device& device, int64_t size,
                                                        const Allocator& allocator) {
  const bool is_gpu = device.type == kDLCUDA || device.type == kDLROCM;
  std::shared_ptr<DeviceMemory> memory;
  if (is_gpu && size > 0) {
    memory = allocate_by(allocator ? allocator : default_allocator(), device, size);
  }
  if (memory == nullptr) memory = std::make_shared<DeviceMemory>(memory_, device, size, stream_);
  return memory;
}

/// nullptr if the allocator leaves it to arrowdl.
std::shared_ptr<DeviceMemory> StreamWork::allocate_by(const Allocator& allocator,
                                                      const Device& device, int64_t size) {
  if (!allocator) return nullptr;
  AllocatedMemory made;
  try {
    made = allocator(device, size);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    memory_.free_cache(device);
    made = allocator(device, size);
  }
  if (made.address == nullptr) return nullptr;
  if (reinterpret_cast<uintptr_t>(made.address) % kAlignment != 0) {
    raise_buffer_error("the allocator returned the address ", made.address, ", which is not a ",
                       "multiple of ", kAlignment, ": it has to align memory to ", kAlignment,
                       " bytes, as those of torch, CuPy and RMM do");
  }
  const Device found = require_backend(device, "allocate").find_device(made.address);
  if (found.id != device.id) {
    raise_buffer_error("the allocator was asked for memory of ", to_string(device),
                       ", and what it returned is on ", to_string(found),
                       ": it has to allocate on the current device");
  }
  auto memory =
      std::make_shared<DeviceMemory>(memory_, device, made.address, std::move(made.owner));
  if (made.stream && *made.stream != stream_) {
    const OwnedEvent used = OwnedEvent::record(device, *made.stream);
    wait_event(device, stream_, used.handle());
  }
  return memory;
}

namespace {

KernelOps& find_or_refuse(const Device& device, const char* verb) {
  if (find_kernels(device) == nullptr) require_host_readable(device, verb);
  return require_kernels(device);
}

}  // namespace

KernelWork::KernelWork(const Device& device, const char* verb)
    : device_(device),
      kernels_(find_or_refuse(device, verb)),
      borrowed_(std::make_shared<BorrowedStream>(require_memory(device, verb), device)),
      work_(require_memory(device, verb), device, borrowed_->get(), borrowed_) {}

void KernelWork::use(std::shared_ptr<const void> owner, EventHandle event) {
  work_.hold(std::move(owner));
  wait_event(device_, work_.stream(), event);
}

std::shared_ptr<DeviceMemory> KernelWork::allocate_integers(int64_t count) {
  int64_t size = 0;
  if (!checked_multiply(count, int64_t{sizeof(int64_t)}, &size)) {
    throw Error(ErrorKind::kMemory, concat("cannot allocate ", count, " integers"));
  }
  return allocate(size);
}

int64_t KernelWork::upload(std::vector<int64_t> numbers) {
  const auto size = static_cast<int64_t>(numbers.size() * sizeof(int64_t));
  const std::shared_ptr<DeviceMemory> memory = allocate(size);
  const auto source = std::make_shared<std::vector<int64_t>>(std::move(numbers));
  work_.hold(source);
  work_.memory().copy(device_, memory->address(), Device{}, source->data(), size, stream());
  return to_address(memory->address());
}

std::vector<int64_t> KernelWork::read(const void* numbers, int64_t count) {
  const auto target = std::make_shared<std::vector<int64_t>>(static_cast<std::size_t>(count));
  work_.hold(target);
  const int64_t size = count * int64_t{sizeof(int64_t)};
  work_.memory().copy(Device{}, target->data(), device_, numbers, size, stream());
  work_.wait();
  return *target;
}

int64_t find_unit(const std::vector<int64_t>& numbers) noexcept {
  int64_t bits = 16;
  for (const int64_t number : numbers) bits |= number;
  return bits & -bits;
}

ARROWDL_END_NAMESPACE
