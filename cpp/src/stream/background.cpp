// Starts the threads that read streams in the background, and ends them with the process.
#include "stream/background.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/wait.hpp"
#include "util/fork.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// What a thread of ours calls at its end.
struct Background {
  bool is_own = false;
  void (*end)() = nullptr;
};

thread_local Background background;

/// The running threads, and their work.
class Running {
 public:
  void add(const std::shared_ptr<BackgroundRead>& read) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reads_.insert(read);
    ++threads_;
  }
  /// Removes the work of a thread that ends. It may be destroyed here.
  void remove(std::shared_ptr<BackgroundRead> read) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    reads_.erase(read);
  }
  void remove_thread() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    --threads_;
    ended_.notify_all();
  }
  void stop(const Waiting& waiting, std::chrono::duration<double> duration) noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    for (const std::shared_ptr<BackgroundRead>& read : reads_) read->close();
    waiting.wait_for(ended_, lock, duration, [&] { return threads_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::set<std::shared_ptr<BackgroundRead>> reads_;
  int64_t threads_ = 0;
};

Running& running() { return of_this_process<Running>(); }

void run(std::shared_ptr<BackgroundRead> read) {
  struct Leave {
    std::shared_ptr<BackgroundRead> read;
    ~Leave() {
      running().remove(std::move(read));
      background.is_own = false;
      if (background.end != nullptr) background.end();
      running().remove_thread();
    }
  };
  Leave leave{std::move(read)};
  background.is_own = true;
  leave.read->run();
}

}  // namespace

void start_background(const std::shared_ptr<BackgroundRead>& read, const char* advice) {
  running().add(read);
  const auto leave = [&read] {
    running().remove(read);
    running().remove_thread();
  };
  try {
    std::thread(run, read).detach();
  } catch (const std::system_error& error) {
    leave();
    throw Error(ErrorKind::kRuntime,
                concat("the thread that reads ahead cannot start (", error.what(),
                       "): this process, its user or its container has as many threads as it may "
                       "have (ulimit -u, docker run --pids-limit). ",
                       advice));
  } catch (...) {
    leave();
    throw;
  }
}

bool at_background_end(void (*end)()) noexcept {
  if (!background.is_own || background.end != nullptr) return false;
  background.end = end;
  return true;
}

void stop_background_reads(double seconds) noexcept {
  wait_guarded([&](const Waiting& waiting) {
    running().stop(waiting, std::chrono::duration<double>(seconds));
  });
}

ARROWDL_END_NAMESPACE
