// GPU events, which order work of GPU streams without a wait on the host.
#pragma once

#include <utility>
#include <vector>

#include "arrowdl/device.hpp"
#include "arrowdl/handles.hpp"
#include "arrowdl/wait.hpp"

ARROWDL_BEGIN_NAMESPACE

class StreamOps;

/// Owns an event that arrowdl recorded. Empty: the work is done.
class OwnedEvent {
 public:
  OwnedEvent() noexcept = default;
  OwnedEvent(OwnedEvent&& other) noexcept { swap(other); }
  OwnedEvent& operator=(OwnedEvent&& other) noexcept {
    OwnedEvent(std::move(other)).swap(*this);
    return *this;
  }
  ~OwnedEvent();

  /// An event for the work that `stream` holds now. Raises BufferError without a backend,
  /// RuntimeError when the runtime fails, BufferError while the stream is captured into a graph.
  static OwnedEvent record(const Device& device, StreamHandle stream);
  /// An event that completes after all of `events`, which may be null and stay their owners'.
  /// Raises BufferError if an event on `device` cannot be waited for.
  static OwnedEvent join(const Device& device, std::vector<EventHandle> events);

  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  const Device& device() const noexcept { return device_; }
  /// Valid for as long as this lives; null when empty.
  EventHandle handle() const noexcept { return handle_; }
  void swap(OwnedEvent& other) noexcept {
    std::swap(streams_, other.streams_);
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }

 private:
  StreamOps* streams_ = nullptr;
  Device device_;
  EventHandle handle_;
};

// These take any sync_event, also those that arrowdl did not record. A null one is complete. All
// raise BufferError if an event on `device` cannot be waited for.

/// Later work on `stream` waits for `event`. The host waits instead if the runtime has no streams
/// (a registered synchronizer).
void wait_event(const Device& device, StreamHandle stream, EventHandle event);

/// Waits on the host for `event`. Raises RuntimeError if the work before it failed.
void synchronize_event(const Device& device, EventHandle event);

/// Whether `event` is complete; false if the runtime cannot tell without a wait.
bool is_complete(const Device& device, EventHandle event);

ARROWDL_END_NAMESPACE
