// Events over the backend of their device.
#include "arrowdl/event.hpp"

#include <algorithm>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

OwnedEvent::~OwnedEvent() {
  if (handle_) streams_->destroy(device_, handle_);
}

OwnedEvent OwnedEvent::record(const Device& device, StreamHandle stream) {
  StreamOps& streams = require_streams(device, "record the work of a stream");
  if (streams.is_capturing(device, stream)) {
    raise_buffer_error("the stream on ", to_string(device),
                       " is being captured into a graph, where its work has no event yet: exchange "
                       "the data before or after the capture");
  }
  OwnedEvent event;
  event.handle_ = streams.record(device, stream);
  event.streams_ = &streams;
  event.device_ = device;
  return event;
}

OwnedEvent OwnedEvent::join(const Device& device, std::vector<EventHandle> events) {
  events.erase(std::remove(events.begin(), events.end(), EventHandle()), events.end());
  if (events.empty()) return {};
  StreamOps* const streams = require_backend(device, "join events").streams();
  if (streams == nullptr) {
    for (const EventHandle event : events) synchronize_event(device, event);
    return {};
  }
  OwnedEvent event;
  event.handle_ = streams->join(device, events);
  event.streams_ = streams;
  event.device_ = device;
  return event;
}

void wait_event(const Device& device, StreamHandle stream, EventHandle event) {
  if (!event) return;
  StreamOps* const streams = require_backend(device, "order a stream after an event").streams();
  if (streams == nullptr) {
    synchronize_event(device, event);
    return;
  }
  if (streams->is_capturing(device, stream)) {
    if (is_complete(device, event)) return;
    raise_buffer_error("the stream on ", to_string(device),
                       " is being captured into a graph, which cannot wait for work outside of it: "
                       "call synchronize() on the array before the capture");
  }
  streams->wait(device, stream, event);
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

ARROWDL_END_NAMESPACE
