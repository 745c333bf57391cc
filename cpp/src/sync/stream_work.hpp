// Work of arrowdl on a GPU stream, and the owners that it holds until it is done.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arrowdl/allocator.hpp"
#include "arrowdl/deferred_release.hpp"
#include "arrowdl/event.hpp"
#include "sync/device_memory.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Work on one GPU stream, the caller's or one of ours. Holds the owners of the memory that the
/// work uses until it is done, also after an error.
class StreamWork {
 public:
  /// Raises BufferError for a stream that is not of `device` or is captured into a graph.
  StreamWork(MemoryOps& memory, const Device& device, std::optional<StreamHandle> stream,
             std::shared_ptr<const void> stream_owner);
  ~StreamWork() { release_after(device_, stream_, std::move(held_), std::move(stream_owner_)); }
  StreamWork(const StreamWork&) = delete;
  StreamWork& operator=(const StreamWork&) = delete;

  MemoryOps& memory() const noexcept { return memory_; }
  StreamHandle stream() const noexcept { return stream_; }
  void hold(std::shared_ptr<const void> used) { held_->push_back(std::move(used)); }
  /// Releases an owner after the work so far, before those that are held.
  void release(std::shared_ptr<const void> used) noexcept;
  /// `size` bytes of the device, held until the work is done: of `allocator` if it is not empty,
  /// else of the default allocator. While there is no memory, waits for pending releases, for a
  /// moment.
  std::shared_ptr<DeviceMemory> allocate(const Device& device, int64_t size,
                                         const Allocator& allocator = {});
  OwnedEvent record() const { return OwnedEvent::record(device_, stream_); }
  void wait() const { synchronize_event(device_, record().handle()); }

 private:
  std::shared_ptr<DeviceMemory> allocate_once(const Device& device, int64_t size,
                                              const Allocator& allocator);
  std::shared_ptr<DeviceMemory> allocate_by(const Allocator& allocator, const Device& device,
                                            int64_t size);

  MemoryOps& memory_;
  const Device device_;
  std::optional<BorrowedStream> borrowed_;
  StreamHandle stream_;
  std::shared_ptr<const void> stream_owner_;
  using Held = std::vector<std::shared_ptr<const void>>;
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

ARROWDL_END_NAMESPACE
