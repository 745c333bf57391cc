// Work of ours on a device: the stream that runs it, and all that it uses.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/owned.hpp"

namespace arrowdl {

/// The backend of `device`. Raises BufferError where arrowdl has none with streams of its own.
Backend& require_copier(const Device& device);

/// Memory of a backend. Nothing uses it any more when it goes.
class BackendMemory {
 public:
  BackendMemory(Backend& backend, const Device& device, int64_t size, StreamHandle stream)
      : backend_(backend), device_(device), memory_(backend.allocate(device, size, stream)) {}
  ~BackendMemory() {
    try {
      const BorrowedStream idle(backend_, device_);
      backend_.free(device_, memory_, idle.get());
    } catch (const std::exception&) {  // the driver has ended, and with it the memory
    }
  }
  BackendMemory(const BackendMemory&) = delete;
  BackendMemory& operator=(const BackendMemory&) = delete;

  const Device& device() const noexcept { return device_; }
  uint8_t* address() const noexcept { return static_cast<uint8_t*>(memory_); }

 private:
  Backend& backend_;
  const Device device_;
  void* const memory_;
};

/// The same, where an array or a tensor lies in it.
class DeviceMemory : public BackendMemory, private Counted {
 public:
  using BackendMemory::BackendMemory;
};

/// The stream of the work, the caller's or one of ours, and what the work uses: kept until it is
/// done, whatever happens.
class StreamWork {
 public:
  /// Raises BufferError for a stream that is not of `device` or is captured into a graph.
  StreamWork(Backend& backend, const Device& device, std::optional<StreamHandle> stream,
             std::shared_ptr<const void> stream_owner);
  ~StreamWork() { release_after(device_, stream_, std::move(held_), std::move(stream_owner_)); }
  StreamWork(const StreamWork&) = delete;
  StreamWork& operator=(const StreamWork&) = delete;

  Backend& backend() const noexcept { return backend_; }
  StreamHandle stream() const noexcept { return stream_; }
  void hold(std::shared_ptr<const void> used) { held_->push_back(std::move(used)); }
  /// Lets go of what was held last once the work so far is done, and not with the rest.
  void release_last() noexcept;
  /// `size` bytes of the device, held.
  std::shared_ptr<DeviceMemory> allocate(const Device& device, int64_t size);
  OwnedEvent record() const { return OwnedEvent::record(device_, stream_); }
  void wait() const { synchronize_event(device_, record().get()); }

 private:
  Backend& backend_;
  const Device device_;
  std::optional<BorrowedStream> borrowed_;
  StreamHandle stream_;
  std::shared_ptr<const void> stream_owner_;
  using Held = std::vector<std::shared_ptr<const void>>;
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

}  // namespace arrowdl
