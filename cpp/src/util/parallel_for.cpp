// The helper threads behind parallel_for.
#include "util/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "arrowdl/error.hpp"
#include "arrowdl/threads.hpp"
#include "arrowdl/wait.hpp"
#include "util/fork.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// More threads do not make memory faster.
constexpr int64_t kMostThreads = 8;

/// How long a helper waits for more work before it ends: longer than a loader takes to its next
/// batch, and short enough that an idle process has no threads of ours.
constexpr std::chrono::milliseconds kIdleTime{200};

/// The first number of a list, as OpenMP, torch and pyarrow read it.
int64_t read_omp_num_threads() noexcept {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  while (*text == ' ') ++text;
  int64_t number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return std::max<int64_t>(0, number);
}

int64_t default_thread_limit() noexcept {
  const int64_t wanted = read_omp_num_threads();
  if (wanted > 0) return wanted;
  return std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
}

std::atomic<int64_t>& limit() noexcept {
  static std::atomic<int64_t> threads{default_thread_limit()};
  return threads;
}

/// The chunks of one loop, which several threads take in turn.
class Loop {
 public:
  Loop(int64_t count, detail::ChunkCall call, const void* context) noexcept
      : count_(count), call_(call), context_(context) {}

  void run_chunks() noexcept {
    for (int64_t i = next_++; i < count_; i = next_++) call_(context_, i);
  }

 private:
  const int64_t count_;
  const detail::ChunkCall call_;
  const void* const context_;
  std::atomic<int64_t> next_{0};
};

/// The helper threads of this process. Idle ones end, and start again when needed.
class Helpers {
 public:
  /// False if they work for another thread, for which this thread does not wait.
  bool run(Loop& loop, int64_t wanted) noexcept {
    const std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    if (!turn) return false;
    open(loop, wanted);
    loop.run_chunks();
    close();
    return true;
  }

 private:
  void open(Loop& loop, int64_t wanted) noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      loop_ = &loop;
      wanted_ = wanted;
      while (helpers_ < wanted && start()) ++helpers_;
    }
    for (int64_t i = 0; i < wanted; ++i) opened_.notify_one();
  }

  /// Waits only for helpers that have begun.
  void close() noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    loop_ = nullptr;
    // They compute and need no lock: releasing the caller's costs more than this wait.
    Waiting::for_own_threads().wait(left_, lock, [&] { return inside_ == 0; });
  }

  bool start() noexcept {
    try {
      std::thread([this] { help(); }).detach();
      return true;
    } catch (const std::exception&) {  // no more threads or memory: the other threads do the work
      return false;
    }
  }

  void help() noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto is_wanted = [&] { return loop_ != nullptr && inside_ < wanted_; };
    while (Waiting::on_own_thread().wait_for(opened_, lock, kIdleTime, is_wanted)) {
      Loop& loop = *loop_;
      ++inside_;
      lock.unlock();
      loop.run_chunks();
      lock.lock();
      loop_ = nullptr;  // all chunks are taken; the next loop starts after this one has ended
      if (--inside_ == 0) left_.notify_all();
    }
    --helpers_;
  }

  std::mutex turn_;  ///< held by the one loop at a time
  std::mutex mutex_;
  std::condition_variable opened_;
  std::condition_variable left_;
  Loop* loop_ = nullptr;  ///< while chunks are left
  int64_t wanted_ = 0;    ///< helpers that may take part
  int64_t inside_ = 0;    ///< helpers that take part
  int64_t helpers_ = 0;
};

}  // namespace

void detail::run_chunks(int64_t count, ChunkCall call, const void* context, int64_t most_threads) {
  Loop loop(count, call, context);
  const int64_t helpers = std::min({limit().load(), count, most_threads}) - 1;
  if (helpers < 1 || !of_this_process<Helpers>().run(loop, helpers)) loop.run_chunks();
}

void set_thread_limit(int64_t threads) {
  if (threads < 1) raise_value_error("a limit of ", threads, " threads: pass 1 or more");
  limit() = threads;
}

int64_t thread_limit() noexcept { return limit(); }

ARROWDL_END_NAMESPACE
