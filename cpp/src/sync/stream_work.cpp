#include "sync/stream_work.hpp"

#include "arrowdl/error.hpp"

namespace arrowdl {

Backend& require_copier(const Device& device) {
  Backend& backend = require_backend(device, "copy");
  if (!backend.makes_streams()) {
    raise_buffer_error("arrowdl does not copy from or to ", to_string(device),
                       ": copy in the library that made the memory, or by the CPU");
  }
  return backend;
}

StreamWork::StreamWork(Backend& backend, const Device& device, std::optional<StreamHandle> stream,
                       std::shared_ptr<const void> stream_owner)
    : backend_(backend), device_(device), stream_owner_(std::move(stream_owner)) {
  if (stream) {
    backend.require_stream_of(device, *stream);
  } else {
    borrowed_.emplace(backend, device);
  }
  stream_ = stream ? *stream : borrowed_->get();
  if (backend.is_capturing(device, stream_)) {
    raise_buffer_error("the stream on ", to_string(device),
                       " is being captured into a graph, which would copy at every launch: copy "
                       "before or after the capture");
  }
}

void StreamWork::release_last() noexcept {
  std::shared_ptr<const void> last = std::move(held_->back());
  held_->pop_back();
  release_after(device_, stream_, std::move(last), stream_owner_);
}

std::shared_ptr<DeviceMemory> StreamWork::allocate(const Device& device, int64_t size) {
  auto memory = std::make_shared<DeviceMemory>(backend_, device, size, stream_);
  hold(memory);
  return memory;
}

}  // namespace arrowdl
