// Reads a stream ahead on a thread.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <vector>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/wait.hpp"
#include "stream/background.hpp"
#include "stream/stream_errors.hpp"
#include "util/fork.hpp"
#include "util/interrupt.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The longest wait of a closed stream for its thread to release the source, which the caller may
/// want to open again.
constexpr std::chrono::seconds kPatience{1};

/// The most slices of one array that are handed over together. Threads that hand over each small
/// slice switch at each.
constexpr std::size_t kMostTogether = 256;

/// Arrays that the thread hands over together. The last one is empty at the end.
using Group = std::vector<DeviceArray>;

/// The state that the reader and its thread share. The thread may outlive the reader while it is in
/// a call of the source; it releases the source when the call returns.
struct Queue final : BackgroundRead {
  Queue(OwnedStream from, std::size_t most) : source(std::move(from)), depth(most) {}

  void run() override;
  void close() noexcept override;

  std::mutex mutex;
  std::condition_variable changed;
  std::list<Group> groups;
  std::size_t count = 0;       // of the arrays in `groups`
  std::exception_ptr failure;  // comes after `groups`
  bool is_closed = false;
  bool is_done = false;  // the thread has released the source
  OwnedStream source;    // the thread's, as is `made`
  std::list<Group> made;
  const std::size_t depth;
};

void Queue::close() noexcept {
  std::list<Group> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    is_closed = true;
    groups.swap(dropped);
    count = 0;
  }
  changed.notify_all();
}

/// Waits for room. Returns whether to read more.
bool wait_for_room(Queue& queue) {
  std::unique_lock<std::mutex> lock(queue.mutex);
  Waiting::on_own_thread().wait(queue.changed, lock,
                                [&] { return queue.is_closed || queue.count < queue.depth; });
  return !queue.is_closed;
}

/// Reads an array, and those that the source holds already, to `made`. Returns whether more may
/// follow.
bool read_group(Queue& queue) {
  Group& group = queue.made.emplace_back();
  do {
    group.push_back(queue.source->next());
  } while (group.back() && group.size() < kMostTogether && queue.source->has_rows(1));
  return static_cast<bool>(group.back());
}

/// Hands over what was made, and a failure after it. Returns whether the queue is open.
bool hand_over(Queue& queue, std::exception_ptr failure = nullptr) noexcept {
  std::list<Group> dropped;  // without the lock
  const std::lock_guard<std::mutex> lock(queue.mutex);
  if (queue.is_closed) {
    dropped.swap(queue.made);
  } else {
    for (const Group& group : queue.made) queue.count += group.size();
    queue.groups.splice(queue.groups.end(), queue.made);
    queue.failure = std::move(failure);
  }
  queue.changed.notify_all();
  return !queue.is_closed;
}

void Queue::run() {
  try {
    bool has_more = true;
    while (has_more && wait_for_room(*this)) {
      has_more = read_group(*this);
      has_more = hand_over(*this) && has_more;
    }
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind&) {  // a finalizing interpreter ends its threads
    throw;
#endif
  } catch (...) {
    hand_over(*this, std::current_exception());
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
    while (position_ == taken_.size()) {
      if (!take_group()) return {};
    }
    if (!taken_[position_]) return {};  // the end stays
    return std::move(taken_[position_++]);
  }

  bool has_rows(int64_t rows) const override {
    return position_ < taken_.size() && taken_[position_] && rows <= taken_[position_].length();
  }

 private:
  void start() {
    start_background(
        queue_, "Read without one, by leaving prefetch() out, or with prefetch=0 of the Loader");
    process_ = fork_count();
    is_started_ = true;
  }

  /// Returns false if the queue was closed, at the end of the process.
  bool take_group() {
    wait_guarded([this](const Waiting& waiting) { wait_for_group(waiting); });
    std::unique_lock<std::mutex> lock(queue_->mutex);
    if (queue_->groups.empty()) {
      if (queue_->failure) raise_failure(queue_->failure);
      return false;
    }
    taken_ = std::move(queue_->groups.front());
    position_ = 0;
    queue_->groups.pop_front();
    queue_->count -= taken_.size();
    lock.unlock();
    queue_->changed.notify_all();
    return true;
  }

  void wait_for_group(const Waiting& waiting) {
    std::unique_lock<std::mutex> lock(queue_->mutex);
    const auto is_ready = [&] {
      return !queue_->groups.empty() || queue_->failure || queue_->is_closed;
    };
    while (!waiting.wait_for(queue_->changed, lock, kInterruptInterval, is_ready)) {
      lock.unlock();
      check_interrupt();
      lock.lock();
    }
  }

  std::shared_ptr<Queue> queue_;
  Group taken_;
  std::size_t position_ = 0;  // in `taken_`
  bool is_started_ = false;
  uint64_t process_ = 0;
};

}  // namespace

OwnedStream prefetch(OwnedStream&& stream, int64_t depth) {
  if (depth < 1) raise_value_error("depth=", depth, ": read at least 1 array ahead");
  return std::make_unique<Prefetch>(std::move(stream), depth);
}

ARROWDL_END_NAMESPACE
