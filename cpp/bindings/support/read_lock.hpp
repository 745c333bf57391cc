// The lock of a stream that Python reads: one thread at a time, across forks and the interpreter's
// end.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace arrowdl::python {

/// The mutex of a `ReadLock`.
class ReadMutex {
  friend class ReadLock;

  std::timed_mutex mutex_;
  std::atomic<std::thread::id> holder_{};
  std::atomic<uint64_t> process_{0};  ///< the holder's `fork_count`
};

/// Locks a stream while it is read, adapted or closed. The caller must not hold the GIL.
class ReadLock {
 public:
  /// Waits for the thread that holds the lock. Raises RuntimeError if that is this thread (the
  /// stream's source, which may be Python code, uses the stream itself), or a thread that never
  /// returns: the interpreter has ended, or the process was forked from that thread's process.
  explicit ReadLock(ReadMutex& mutex);
  ~ReadLock();
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  void lock();

  ReadMutex& mutex_;
};

}  // namespace arrowdl::python
