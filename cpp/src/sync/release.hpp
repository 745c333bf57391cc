// A release of memory that has to wait for the work of GPU streams.
#pragma once

#include <cstdint>
#include <memory>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/event.hpp"

namespace arrowdl {

/// A stream that uses some memory. From the release on it has an event for its work.
struct RecordedStream {
  RetainedStream stream;
  OwnedEvent event;
  std::unique_ptr<RecordedStream> next;
};

/// An owner, and the streams whose work has to be done before it is dropped.
struct Release {
  std::unique_ptr<RecordedStream> streams;
  std::shared_ptr<const void> owner;
  int64_t bytes = 0;

  /// Records an event for the work of each stream. Returns whether all have one: a stream that is
  /// being captured gets its event after the capture, which covers later work too, and is as safe.
  bool record();
  /// Whether the work of every stream is done. Does not wait.
  bool is_due();
  /// Waits on the host for every event. Needs `record`.
  void wait() const;
};

/// Waits on the host for the work of `streams`, also of those without an event. False, without a
/// wait, if one is being captured into a graph.
bool wait_for_streams(const RecordedStream* streams);

/// Never drops the owner, since its device has failed or ended and may still read the memory.
void abandon(Release release) noexcept;

/// Counts one release as abandoned.
void count_abandoned() noexcept;

/// Waits for the release on the host, and drops the owner; abandons it if the device fails.
void finish(Release release) noexcept;

/// Drops the owner if the release is due; abandons it if the device fails. Returns whether the
/// release is over. Does not wait.
bool try_finish(Release& release) noexcept;

}  // namespace arrowdl
