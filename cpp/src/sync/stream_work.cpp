// Runs work of arrowdl on a GPU stream.
#include "sync/stream_work.hpp"

#include "arrowdl/error.hpp"

namespace arrowdl {

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

void StreamWork::release_last() noexcept {
  std::shared_ptr<const void> last = std::move(held_->back());
  held_->pop_back();
  release_after(device_, stream_, std::move(last), stream_owner_);
}

std::shared_ptr<DeviceMemory> StreamWork::allocate(const Device& device, int64_t size) {
  auto memory = std::make_shared<DeviceMemory>(memory_, device, size, stream_);
  hold(memory);
  return memory;
}

}  // namespace arrowdl
