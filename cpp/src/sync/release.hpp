// A release of memory that has to wait for the work of GPU streams.
#pragma once

#include <cstdint>
#include <memory>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/event.hpp"

namespace arrowdl {

/// A stream in the list of those that use some memory; from the release on, with an event for its
/// work.
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

  /// Whether every stream's work has an event. A stream that is captured into a graph gets one when
  /// the capture is over; it then covers later work too, which is as safe.
  bool record();
  /// Whether the work of every stream is done. Does not wait.
  bool is_due();
  /// Waits on the host for every event. Needs `record`.
  void wait() const;
};

/// Waits on the host for the work of `streams`, also of those without an event. False, without
/// waiting, where one is captured into a graph.
bool wait_for_streams(const RecordedStream* streams);

/// Never drops the owner: its device has failed or ended, and what the work may have read stays.
void abandon(Release release) noexcept;

/// Counts one release as abandoned.
void count_abandoned() noexcept;

/// Waits for the release on the host, and drops the owner; abandons it where the device fails.
void finish(Release release) noexcept;

/// Drops the owner if the release is due; abandons it where the device fails. Whether the release
/// is over. Does not wait.
bool try_finish(Release& release) noexcept;

}  // namespace arrowdl
