#include "util/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/threads.hpp"
#include "arrowdl/wait.hpp"
#include "util/fork.hpp"

namespace arrowdl {
namespace {

/// Memory is not faster for more of them.
constexpr int64_t kMostThreads = 8;

/// How long a helper waits for more work before it ends: a loader's next batch comes sooner, and a
/// process that has done with its data has no threads of ours.
constexpr std::chrono::milliseconds kIdleTime{200};

/// As OpenMP, torch and pyarrow read it: the first number of a list.
int64_t read_omp_num_threads() noexcept {
  const char* text = std::getenv("OMP_NUM_THREADS");
  return text == nullptr ? 0 : std::max<int64_t>(0, std::strtol(text, nullptr, 10));
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

/// Shares that several threads take one after the other.
class Section {
 public:
  Section(int64_t count, detail::ShareCall call, const void* context) noexcept
      : count_(count), call_(call), context_(context) {}

  void work_off() noexcept {
    for (int64_t i = next_++; i < count_; i = next_++) call_(context_, i);
  }

 private:
  const int64_t count_;
  const detail::ShareCall call_;
  const void* const context_;
  std::atomic<int64_t> next_{0};
};

/// The helpers of this process. They end when they are idle, and start again when they are wanted.
class Helpers {
 public:
  /// False where they work for another thread: nobody waits for them.
  bool run(Section& section, int64_t wanted) noexcept {
    const std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    if (!turn) return false;
    open(section, wanted);
    section.work_off();
    close();
    return true;
  }

 private:
  void open(Section& section, int64_t wanted) noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      section_ = &section;
      wanted_ = wanted;
      while (helpers_ < wanted && start()) ++helpers_;
    }
    for (int64_t i = 0; i < wanted; ++i) opened_.notify_one();
  }

  /// Who has not begun by now is not waited for.
  void close() noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    section_ = nullptr;
    // Computing, which needs no lock of anybody's: not worth it to let go of the caller's.
    Waiting::for_own_threads().wait(left_, lock, [&] { return inside_ == 0; });
  }

  bool start() noexcept {
    try {
      std::thread([this] { help(); }).detach();
      return true;
    } catch (const std::exception&) {  // no more threads, or memory: the others do it
      return false;
    }
  }

  void help() noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto is_wanted = [&] { return section_ != nullptr && inside_ < wanted_; };
    while (Waiting::on_own_thread().wait_for(opened_, lock, kIdleTime, is_wanted)) {
      Section& section = *section_;
      ++inside_;
      lock.unlock();
      section.work_off();
      lock.lock();
      section_ = nullptr;  // all of its shares are taken; no other opens before this one is left
      if (--inside_ == 0) left_.notify_all();
    }
    --helpers_;
  }

  std::mutex turn_;  ///< of the one section at a time
  std::mutex mutex_;
  std::condition_variable opened_;
  std::condition_variable left_;
  Section* section_ = nullptr;  ///< while it has shares left
  int64_t wanted_ = 0;          ///< helpers that may be at it
  int64_t inside_ = 0;          ///< helpers that are
  int64_t helpers_ = 0;
};

}  // namespace

void detail::run_shares(int64_t count, ShareCall call, const void* context) {
  Section section(count, call, context);
  const int64_t helpers = std::min(limit().load(), count) - 1;
  if (helpers < 1 || !of_this_process<Helpers>().run(section, helpers)) section.work_off();
}

void set_thread_limit(int64_t threads) {
  if (threads < 1) raise_value_error("a limit of ", threads, " threads: it is 1 or more");
  limit() = threads;
}

int64_t thread_limit() noexcept { return limit(); }

}  // namespace arrowdl
