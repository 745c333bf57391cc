// Tests parallel_for, and the thread limit of threads.hpp.
#include "util/parallel_for.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "arrowdl/copy.hpp"
#include "arrowdl/threads.hpp"
#include "support/expect_error.hpp"

namespace arrowdl {
namespace {

using testing::expect_error;

class Parallel : public ::testing::Test {
 protected:
  void SetUp() override { set_thread_limit(4); }
  void TearDown() override { set_thread_limit(limit_); }

 private:
  const int64_t limit_ = thread_limit();
};

/// Chunks that wait for each other, so that each needs a thread.
class Meeting {
 public:
  explicit Meeting(int64_t size) : size_(size) {}

  void join() noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    ++here_;
    all_here_.notify_all();
    all_here_.wait(lock, [&] { return here_ >= size_; });
  }

 private:
  const int64_t size_;
  int64_t here_ = 0;
  std::mutex mutex_;
  std::condition_variable all_here_;
};

/// The threads that run `count` chunks at once.
std::set<std::thread::id> find_threads(int64_t count) {
  Meeting meeting(count);
  std::vector<std::thread::id> ids(static_cast<std::size_t>(count));
  parallel_for(count, [&](int64_t i) noexcept {
    ids[static_cast<std::size_t>(i)] = std::this_thread::get_id();
    meeting.join();
  });
  return {ids.begin(), ids.end()};
}

void expect_each_once(int64_t count) {
  std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
  parallel_for(count, [&](int64_t i) noexcept { ++calls[static_cast<std::size_t>(i)]; });
  EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](const auto& n) { return n == 1; }));
}

TEST_F(Parallel, EachShareIsDoneOnce) {
  for (int64_t count = 0; count < 40; ++count) expect_each_once(count);
  for (int i = 0; i < 500; ++i) expect_each_once(17);
}

TEST_F(Parallel, SeveralThreadsWork) {
  EXPECT_EQ(find_threads(4).size(), 4U);
  EXPECT_EQ(find_threads(2).size(), 2U);
}

TEST_F(Parallel, NoMoreThanTheLimit) {
  EXPECT_EQ(find_threads(4).size(), 4U);  // threads that run now
  for (const int64_t limit : {2, 1}) {
    set_thread_limit(limit);
    std::atomic<int64_t> inside{0};
    std::atomic<int64_t> most{0};
    parallel_for(50, [&](int64_t) noexcept {
      const int64_t now = ++inside;
      int64_t known = most;
      while (known < now && !most.compare_exchange_weak(known, now)) {
      }
      std::this_thread::yield();
      --inside;
    });
    EXPECT_LE(most, limit);
  }
}

TEST_F(Parallel, ALimitOfOneIsTheOwnThread) {
  set_thread_limit(1);
  const auto own = std::this_thread::get_id();
  bool is_own = true;
  parallel_for(20, [&](int64_t) noexcept { is_own = is_own && std::this_thread::get_id() == own; });
  EXPECT_TRUE(is_own);
  expect_error(ErrorKind::kValue, "a limit of 0 threads", [] { set_thread_limit(0); });
}

/// A thread that finds the helpers busy works alone.
TEST_F(Parallel, NobodyWaitsForAnother) {
  Meeting begun(3);  // both chunks of the first loop, and this thread
  Meeting done(3);
  std::thread first([&] {
    parallel_for(2, [&](int64_t) noexcept {
      begun.join();
      done.join();
    });
  });
  begun.join();
  const auto own = std::this_thread::get_id();
  bool is_own = true;
  parallel_for(20, [&](int64_t) noexcept { is_own = is_own && std::this_thread::get_id() == own; });
  EXPECT_TRUE(is_own);
  done.join();
  first.join();
}

TEST_F(Parallel, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 200; ++round) expect_each_once(9);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

#if defined(__linux__)
std::size_t count_threads() {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    static_cast<void>(task);
    ++count;
  }
  return count;
}

TEST_F(Parallel, HelpersEndWhenTheyAreIdleAndComeAgain) {
  for (int round = 0; round < 2; ++round) {
    Meeting here(4);
    Meeting counted(4);
    std::atomic<std::size_t> all{0};
    parallel_for(4, [&](int64_t i) noexcept {
      here.join();
      if (i == 0) all = count_threads();
      counted.join();
    });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (count_threads() > all - 3 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(count_threads(), all - 3);
  }
}
#endif

}  // namespace
}  // namespace arrowdl
