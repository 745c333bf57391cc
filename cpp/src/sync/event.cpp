#include "arrowdl/event.hpp"

#include <algorithm>

#include "arrowdl/error.hpp"

namespace arrowdl {
OwnedEvent::~OwnedEvent() {
  if (handle_) backend_->destroy(device_, handle_);
}

OwnedEvent OwnedEvent::record(const Device& device, StreamHandle stream) {
  Backend& backend = require_backend(device, "record the work of a stream");
  if (backend.is_capturing(device, stream)) {
    raise_buffer_error("the stream on ", to_string(device),
                       " is being captured into a graph, where its work has no event yet: exchange "
                       "the data before or after the capture");
  }
  OwnedEvent event;
  event.handle_ = backend.record(device, stream);
  event.backend_ = &backend;
  event.device_ = device;
  return event;
}

OwnedEvent OwnedEvent::join(const Device& device, std::vector<EventHandle> events) {
  events.erase(std::remove(events.begin(), events.end(), EventHandle()), events.end());
  if (events.empty()) return {};
  Backend& backend = require_backend(device, "join events");
  if (!backend.has_streams()) {
    for (const EventHandle event : events) synchronize_event(device, event);
    return {};
  }
  OwnedEvent event;
  event.handle_ = backend.join(device, events);
  event.backend_ = &backend;
  event.device_ = device;
  return event;
}

void Backend::synchronize_stream(const Device& device, StreamHandle stream) {
  const OwnedEvent event = OwnedEvent::record(device, stream);
  synchronize(device, event.get());
}

void wait_event(const Device& device, StreamHandle stream, EventHandle event) {
  if (!event) return;
  Backend& backend = require_backend(device, "order a stream after an event");
  if (!backend.has_streams()) {
    synchronize_event(device, event);
    return;
  }
  if (backend.is_capturing(device, stream)) {
    raise_buffer_error("the stream on ", to_string(device),
                       " is being captured into a graph, which cannot wait for work outside of it: "
                       "exchange the data before the capture");
  }
  backend.wait(device, stream, event);
}

void synchronize_event(const Device& device, EventHandle event) {
  if (!event) return;
  Backend& backend = require_backend(device, "wait for an event");
  wait_guarded([&](const Waiting&) { backend.synchronize(device, event); });
}

bool is_complete(const Device& device, EventHandle event) {
  if (!event) return true;
  return require_backend(device, "query an event").is_complete(device, event);
}

}  // namespace arrowdl
