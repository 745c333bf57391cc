// Reads a stream ahead on a thread.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <set>
#include <system_error>
#include <thread>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/wait.hpp"
#include "stream/own_process.hpp"
#include "util/fork.hpp"
#include "util/interrupt.hpp"

namespace arrowdl {
namespace {

/// The longest wait of a closed stream for its thread to release the source, which the caller may
/// want to open again.
constexpr std::chrono::seconds kPatience{1};

/// The state that the reader and its thread share. The thread may outlive the reader while it is in
/// a call of the source; it releases the source when the call returns.
struct Queue {
  Queue(OwnedStream from, std::size_t most) : source(std::move(from)), depth(most) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::list<DeviceArray> arrays;  // the last one is empty at the end
  std::exception_ptr failure;     // comes after `arrays`
  bool is_closed = false;
  bool is_done = false;  // the thread has released the source
  OwnedStream source;    // the thread's
  const std::size_t depth;
};

/// The queues with running threads, which are closed at the end of the process.
class Running {
 public:
  void add(const std::shared_ptr<Queue>& queue) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queues_.insert(queue);
  }
  void remove(const std::shared_ptr<Queue>& queue) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    queues_.erase(queue);
    gone_.notify_all();
  }
  void stop(const Waiting& waiting, std::chrono::duration<double> duration) noexcept;

 private:
  std::mutex mutex_;
  std::condition_variable gone_;
  std::set<std::shared_ptr<Queue>> queues_;
};

Running& running() { return of_this_process<Running>(); }

void close(Queue& queue) noexcept {
  std::list<DeviceArray> dropped;
  {
    const std::lock_guard<std::mutex> lock(queue.mutex);
    queue.is_closed = true;
    queue.arrays.swap(dropped);
  }
  queue.changed.notify_all();
}

void Running::stop(const Waiting& waiting, std::chrono::duration<double> duration) noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  for (const std::shared_ptr<Queue>& queue : queues_) close(*queue);
  waiting.wait_for(gone_, lock, duration, [&] { return queues_.empty(); });
}

/// Waits for room. Returns whether to read another array.
bool wait_for_room(Queue& queue) {
  std::unique_lock<std::mutex> lock(queue.mutex);
  Waiting::on_own_thread().wait(
      queue.changed, lock, [&] { return queue.is_closed || queue.arrays.size() < queue.depth; });
  return !queue.is_closed;
}

/// Returns whether more arrays may follow.
bool put(Queue& queue, DeviceArray array) {
  const bool is_last = !array;
  const std::lock_guard<std::mutex> lock(queue.mutex);
  if (queue.is_closed) return false;
  queue.arrays.push_back(std::move(array));
  queue.changed.notify_all();
  return !is_last;
}

void fail(Queue& queue, std::exception_ptr failure) {
  const std::lock_guard<std::mutex> lock(queue.mutex);
  if (!queue.is_closed) queue.failure = std::move(failure);
  queue.changed.notify_all();
}

void read_ahead(const std::shared_ptr<Queue>& queue) {
  try {
    while (wait_for_room(*queue) && put(*queue, queue->source->next())) {
    }
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind&) {  // a finalizing interpreter ends its threads
    throw;
#endif
  } catch (...) {
    fail(*queue, std::current_exception());
  }
  queue->source.reset();
  const std::lock_guard<std::mutex> lock(queue->mutex);
  queue->is_done = true;
  queue->changed.notify_all();
}

/// Waits up to kPatience for the thread to end.
void wait_for_end(const Waiting& waiting, Queue& queue) {
  std::unique_lock<std::mutex> lock(queue.mutex);
  waiting.wait_for(queue.changed, lock, kPatience, [&] { return queue.is_done; });
}

void run(const std::shared_ptr<Queue>& queue) {
  struct Leave {
    const std::shared_ptr<Queue>& queue;
    ~Leave() { running().remove(queue); }
  };
  const Leave leave{queue};
  read_ahead(queue);
}

class Prefetch final : public ArrayStream {
 public:
  Prefetch(OwnedStream source, int64_t depth)
      : ArrayStream(source->schema(), source->device_type()),
        queue_(std::make_shared<Queue>(std::move(source), static_cast<std::size_t>(depth))) {}

  ~Prefetch() override {
    if (!is_started_) return;
    if (process_ == fork_count()) {
      close(*queue_);
      wait_guarded([this](const Waiting& waiting) { wait_for_end(waiting, *queue_); });
    } else {  // abandons a queue that the parent's thread may have had locked at the fork
      // A reference that is never dropped, made without an allocation, which could fail.
      alignas(std::shared_ptr<Queue>) unsigned char kept[sizeof(std::shared_ptr<Queue>)];
      new (kept) std::shared_ptr<Queue>(std::move(queue_));
    }
  }

  DeviceArray next(int64_t) override {
    if (!is_started_) start();
    require_own_process(process_);
    wait_guarded([this](const Waiting& waiting) { wait_for_array(waiting); });
    std::unique_lock<std::mutex> lock(queue_->mutex);
    if (queue_->arrays.empty()) {
      if (queue_->failure) raise_failure();
      return {};  // closed, at the end of the process
    }
    DeviceArray array = queue_->arrays.front();
    if (array) queue_->arrays.pop_front();  // the end stays
    lock.unlock();
    queue_->changed.notify_all();
    return array;
  }

 private:
  /// Raises the failure. A Python exception can be raised once.
  [[noreturn]] void raise_failure() {
    try {
      std::rethrow_exception(queue_->failure);
    } catch (const Error&) {
      throw;
    } catch (...) {
      queue_->failure = std::make_exception_ptr(
          Error(ErrorKind::kRuntime, "the stream has failed: its error was raised before"));
      throw;
    }
  }

  void start() {
    running().add(queue_);
    try {
      std::thread(run, queue_).detach();
    } catch (const std::system_error& error) {
      running().remove(queue_);
      throw Error(ErrorKind::kRuntime,
                  concat("the thread that reads ahead cannot start (", error.what(),
                         "): this process, its user or its container has as many threads as it may "
                         "have (ulimit -u, docker run --pids-limit). Read without one, by leaving "
                         "prefetch() out, or with prefetch=0 of the Loader"));
    } catch (...) {
      running().remove(queue_);
      throw;
    }
    process_ = fork_count();
    is_started_ = true;
  }

  void wait_for_array(const Waiting& waiting) {
    std::unique_lock<std::mutex> lock(queue_->mutex);
    const auto is_ready = [&] {
      return !queue_->arrays.empty() || queue_->failure || queue_->is_closed;
    };
    while (!waiting.wait_for(queue_->changed, lock, kInterruptInterval, is_ready)) {
      lock.unlock();
      check_interrupt();
      lock.lock();
    }
  }

  std::shared_ptr<Queue> queue_;
  bool is_started_ = false;
  uint64_t process_ = 0;
};

}  // namespace

OwnedStream prefetch(OwnedStream&& stream, int64_t depth) {
  if (depth < 1) raise_value_error("depth=", depth, ": read at least 1 array ahead");
  return std::make_unique<Prefetch>(std::move(stream), depth);
}

void stop_prefetching(double seconds) noexcept {
  wait_guarded([&](const Waiting& waiting) {
    running().stop(waiting, std::chrono::duration<double>(seconds));
  });
}

}  // namespace arrowdl
