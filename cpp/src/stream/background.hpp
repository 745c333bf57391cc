// Threads that read streams in the background, until the stream or the process ends.
#pragma once

#include <memory>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The work of a background thread, shared with the stream that it works for.
class BackgroundRead {
 public:
  virtual ~BackgroundRead() = default;
  /// The thread's work. It returns soon after `close`, unless it is in a call of a source.
  virtual void run() = 0;
  /// Ends the work, because the process ends. Called on any thread.
  virtual void close() noexcept = 0;
};

/// Runs `read->run()` on a thread of its own. Raises RuntimeError if no thread can start; `advice`
/// says how to do without one.
void start_background(const std::shared_ptr<BackgroundRead>& read, const char* advice);

/// Calls `end`, which must not throw, when the calling thread ends, if start_background started it:
/// after its work was destroyed, and before stop_background_reads returns. One function for a
/// thread, the first. Returns whether `end` will be called.
bool at_background_end(void (*end)()) noexcept;

ARROWDL_END_NAMESPACE
