// The lock of a stream that Python reads: one thread at a time, across forks and the interpreter's
// end.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace arrowdl::python {

/// What a `ReadLock` locks.
class ReadMutex {
  friend class ReadLock;

  std::timed_mutex mutex_;
  std::atomic<std::thread::id> holder_{};
  std::atomic<uint64_t> process_{0};  ///< of the holder, as `fork_count` counts them
};

/// Locks a stream while it is read, adapted or closed. Taken without the GIL.
class ReadLock {
 public:
  /// Waits for the thread that has the lock. Raises RuntimeError if that is this thread (the
  /// stream's source, which may be Python code, uses the stream itself), or a thread that never
  /// returns: the interpreter ended, or the thread is of the process that this one was forked from.
  explicit ReadLock(ReadMutex& mutex);
  ~ReadLock();
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  void lock();

  ReadMutex& mutex_;
};

}  // namespace arrowdl::python
