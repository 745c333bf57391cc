// Events: what orders one stream's work after another's without the host waiting.
#pragma once

#include <utility>
#include <vector>

#include "arrowdl/backend.hpp"
#include "arrowdl/device.hpp"
#include "arrowdl/wait.hpp"

namespace arrowdl {

/// An event that arrowdl recorded, destroyed with it. An empty one stands for work that is done.
class OwnedEvent {
 public:
  OwnedEvent() noexcept = default;
  OwnedEvent(OwnedEvent&& other) noexcept { swap(other); }
  OwnedEvent& operator=(OwnedEvent&& other) noexcept {
    OwnedEvent(std::move(other)).swap(*this);
    return *this;
  }
  ~OwnedEvent();

  /// The work that `stream` holds now. Raises BufferError without a backend, RuntimeError when the
  /// runtime fails, BufferError while the stream is captured into a graph.
  static OwnedEvent record(const Device& device, StreamHandle stream);
  /// What has happened once all of `events`, of anybody's and possibly null, have. Raises
  /// BufferError when nobody can wait for an event on `device`.
  static OwnedEvent join(const Device& device, std::vector<EventHandle> events);

  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  const Device& device() const noexcept { return device_; }
  /// Valid for as long as this lives; null when empty.
  EventHandle get() const noexcept { return handle_; }
  void swap(OwnedEvent& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }

 private:
  Backend* backend_ = nullptr;
  Device device_;
  EventHandle handle_;
};

// For a sync_event of anybody's, which may be null: then there is nothing to do, and any device
// will do. All raise BufferError when nobody can wait for an event on `device`.

/// Makes what `stream` is given from now on run after `event`. Where the runtime knows events but
/// no such order (a registered synchronizer), the host waits.
void wait_event(const Device& device, StreamHandle stream, EventHandle event);

/// Waits on the host. Raises RuntimeError when the work before the event failed.
void synchronize_event(const Device& device, EventHandle event);

/// Whether the event has happened; false where the runtime cannot tell without waiting.
bool is_complete(const Device& device, EventHandle event);

}  // namespace arrowdl
