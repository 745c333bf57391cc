// Runs work of arrowdl on a GPU stream.
#include "sync/stream_work.hpp"

#include <chrono>
#include <cstdint>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "sync/release_thread.hpp"

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

ARROWDL_END_NAMESPACE
