// Locks a stream of Python for one thread at a time.
#include "support/read_lock.hpp"

#include <chrono>

#include "arrowdl/error.hpp"
#include "support/gil.hpp"
#include "util/fork.hpp"
#include "util/timed_lock.hpp"

namespace arrowdl::python {

ReadLock::ReadLock(ReadMutex& mutex) : mutex_(mutex) {
  const std::thread::id own = std::this_thread::get_id();
  if (mutex_.holder_ == own && mutex_.process_ == fork_count()) {
    throw Error(ErrorKind::kRuntime,
                "this DeviceStream is being read by this thread: its source cannot read, adapt or "
                "close it in turn");
  }
  lock();
  mutex_.process_ = fork_count();
  mutex_.holder_ = own;
}

ReadLock::~ReadLock() {
  mutex_.holder_ = std::thread::id();
  mutex_.mutex_.unlock();
}

void ReadLock::lock() {
  constexpr std::chrono::milliseconds kInterval{50};
  while (!try_lock_for(mutex_.mutex_, kInterval)) {
    if (mutex_.holder_ != std::thread::id() && mutex_.process_ != fork_count()) {
      throw Error(ErrorKind::kRuntime,
                  "this DeviceStream was being read by a thread of the process that this one was "
                  "forked from: make the stream in the process that reads it");
    }
    if (is_ending()) {
      throw Error(ErrorKind::kRuntime,
                  "another thread was reading this DeviceStream when the interpreter ended");
    }
    check_signals();
  }
}

}  // namespace arrowdl::python
