// A release of memory that has to wait for the work of GPU streams.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "arrowdl/deferred_release.hpp"
#include "arrowdl/event.hpp"
#include "util/fork.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A stream that uses some memory. From the release on it has an event for its work.
struct RecordedStream {
  RetainedStream stream;
  OwnedEvent event;
  std::unique_ptr<RecordedStream> next;
  uint64_t process = fork_count();  ///< of the stream
};

/// An owner, and the streams whose work has to be done before it is dropped.
struct Release {
  std::unique_ptr<RecordedStream> streams;
  std::shared_ptr<const void> owner;
  int64_t bytes = 0;
  Device device = {};  ///< of `work`
  std::shared_ptr<const ConsumerWork> work =
      nullptr;               ///< becomes one of `streams` when it is recorded
  bool has_work = false;     ///< of a consumer, also after `work` is recorded
  bool is_captured = false;  ///< a stream without an event was being captured at the last `record`
  int failures = 0;          ///< of the driver, on the release thread

  /// Whether the release may wait for what its caller does next: to end a capture, or to return
  /// from a host callback of the consumer's work. Then no thread may wait for it.
  bool may_need_caller() const noexcept { return is_captured || has_work; }

  /// Records an event for the work of each stream. Returns whether all have one, and `work` is
  /// recorded: a stream that is being captured gets its event after the capture, which covers later
  /// work too, and is as safe.
  bool record();
  /// Whether the work of every stream is done. Does not wait.
  bool is_due();
  /// Waits on the host for every event. Needs `record`.
  void wait() const;
};

/// Records the `work` of releases, once for all that have the same one: it costs the consumer a
/// computation. Tries again later after an error, which counts as one of each release.
void record_works(std::list<Release>& releases) noexcept;

/// Waits on the host for the work of `streams`, also of those without an event. False, without a
/// wait, if one is being captured into a graph.
bool wait_for_streams(const RecordedStream* streams);

/// Never drops the owner, since its device has failed or ended and may still read the memory.
void abandon(Release release) noexcept;

/// Counts one release as abandoned.
void count_abandoned() noexcept;

/// Drops the owner if the release is due. Tries again later after an error of the device, which may
/// pass, and abandons the release after many. Returns whether the release is over. Does not wait.
bool try_finish(Release& release) noexcept;

ARROWDL_END_NAMESPACE
