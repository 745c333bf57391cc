// Reads a stream ahead on a thread.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/wait.hpp"
#include "stream/background.hpp"
#include "stream/own_process.hpp"
#include "stream/stream_errors.hpp"
#include "util/fork.hpp"
#include "util/interrupt.hpp"

namespace arrowdl {
namespace {

/// The longest wait of a closed stream for its thread to release the source, which the caller may
/// want to open again.
constexpr std::chrono::seconds kPatience{1};

/// The state that the reader and its thread share. The thread may outlive the reader while it is in
/// a call of the source; it releases the source when the call returns.
struct Queue final : BackgroundRead {
  Queue(OwnedStream from, std::size_t most) : source(std::move(from)), depth(most) {}

  void run() override;
  void close() noexcept override;

  std::mutex mutex;
  std::condition_variable changed;
  std::list<DeviceArray> arrays;  // the last one is empty at the end
  std::exception_ptr failure;     // comes after `arrays`
  bool is_closed = false;
  bool is_done = false;  // the thread has released the source
  OwnedStream source;    // the thread's
  const std::size_t depth;
};

void Queue::close() noexcept {
  std::list<DeviceArray> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    is_closed = true;
    arrays.swap(dropped);
  }
  changed.notify_all();
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

void Queue::run() {
  try {
    while (wait_for_room(*this) && put(*this, source->next())) {
    }
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind&) {  // a finalizing interpreter ends its threads
    throw;
#endif
  } catch (...) {
    fail(*this, std::current_exception());
  }
  source.reset();
  const std::lock_guard<std::mutex> lock(mutex);
  is_done = true;
  changed.notify_all();
}

/// Waits up to kPatience for the thread to end.
void wait_for_end(const Waiting& waiting, Queue& queue) {
  std::unique_lock<std::mutex> lock(queue.mutex);
  waiting.wait_for(queue.changed, lock, kPatience, [&] { return queue.is_done; });
}

class Prefetch final : public ArrayStream {
 public:
  Prefetch(OwnedStream source, int64_t depth)
      : ArrayStream(source->schema(), source->device_type()),
        queue_(std::make_shared<Queue>(std::move(source), static_cast<std::size_t>(depth))) {}

  ~Prefetch() override {
    if (!is_started_) return;
    if (process_ == fork_count()) {
      queue_->close();
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
      if (queue_->failure) raise_failure(queue_->failure);
      return {};  // closed, at the end of the process
    }
    DeviceArray array = queue_->arrays.front();
    if (array) queue_->arrays.pop_front();  // the end stays
    lock.unlock();
    queue_->changed.notify_all();
    return array;
  }

 private:
  void start() {
    start_background(
        queue_, "Read without one, by leaving prefetch() out, or with prefetch=0 of the Loader");
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

}  // namespace arrowdl
