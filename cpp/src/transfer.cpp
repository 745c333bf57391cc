#include "transfer.hpp"

#include "arrowdl/error.hpp"

namespace arrowdl {

Transfer::Transfer(Backend& backend, const Device& device, std::optional<Stream> stream,
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

std::shared_ptr<DeviceMemory> Transfer::allocate(const Device& device, int64_t size) {
  auto memory = std::make_shared<DeviceMemory>(backend_, device, size, stream_);
  hold(memory);
  return memory;
}

}  // namespace arrowdl
