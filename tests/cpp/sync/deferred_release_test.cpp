// Tests deferred release: memory that a stream may still read is not freed.
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>

#include "arrowdl/event.hpp"
#include "arrowdl/wait.hpp"
#include "support/device_test.hpp"
#include "sync/stream_work.hpp"

namespace arrowdl {
namespace {

using testing::DeviceTest;
using testing::eventually;

using Bytes = std::vector<uint8_t>;

class DeferredReleaseTest : public DeviceTest {
 protected:
  /// Memory full of 5s that is overwritten at once, without stream order, when it is dropped, like
  /// memory that an allocator reuses.
  std::shared_ptr<uint8_t> make_poisoned(std::size_t size) {
    const auto memory = make_memory(static_cast<int64_t>(size));
    std::fill_n(memory.get(), size, uint8_t{5});
    return {memory.get(), [this, memory, size](uint8_t* bytes) {
              std::fill_n(bytes, size, testing::FakeDriver::kPoison);
              ++dropped_;
            }};
  }

  std::atomic<int> dropped_{0};
};
INSTANTIATE_DEVICE_TESTS(DeferredReleaseTest);

TEST_P(DeferredReleaseTest, WithoutItTheConsumerReadsPoison) {
  const Gated consumer = take_gated_stream();
  auto memory = make_poisoned(4);
  const auto read = read_on(consumer.stream, memory.get(), 4);
  memory.reset();
  fake_->drain(
      0, backend_->memory()->work_stream(device_));  // the free is done before the late reader
  fake_->open_gate(consumer.gate);
  fake_->drain(0, consumer.stream);
  EXPECT_EQ(*read, Bytes(4, testing::FakeDriver::kPoison));
  EXPECT_EQ(fake_->misuses(), 1) << "the consumer's read, which the fake driver has found";
  fake_->reset();
}

TEST_P(DeferredReleaseTest, MemoryStaysUntilTheConsumerHasReadIt) {
  const Gated consumer = take_gated_stream();
  auto memory = make_poisoned(4);
  const auto read = read_on(consumer.stream, memory.get(), 4);
  RecordedStreams used;
  EXPECT_TRUE(used.empty());
  used.add(device_, consumer.stream);
  used.add(device_, consumer.stream);
  EXPECT_FALSE(used.empty());
  used.release(std::move(memory));
  EXPECT_EQ(dropped_, 0) << "and no thread has waited: the gate is closed";
  EXPECT_EQ(pending_releases(), 1);
  fake_->open_gate(consumer.gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 1; }));
  EXPECT_EQ(*read, Bytes(4, 5));
}

TEST_P(DeferredReleaseTest, EveryStreamCounts) {
  const Gated first = take_gated_stream();
  const Gated second = take_gated_stream();
  RecordedStreams used;
  used.add(device_, first.stream);
  used.add(device_, second.stream);
  auto memory = make_poisoned(4);
  const auto read = read_on(second.stream, memory.get(), 4);
  used.release(std::move(memory));
  fake_->open_gate(first.gate);
  fake_->drain(0, first.stream);
  EXPECT_EQ(dropped_, 0);
  fake_->open_gate(second.gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 1; }));
  EXPECT_EQ(*read, Bytes(4, 5));
}

TEST_P(DeferredReleaseTest, AStreamOfAnotherDeviceCountsToo) {
  const Device other{GetParam().device, 1};
  const StreamHandle stream = backend_->memory()->acquire_stream(other);
  const int gate = fake_->close_gate();
  fake_->enqueue_gate(1, stream, gate);
  const int64_t abandoned = abandoned_releases();
  RecordedStreams used;
  used.add(device_, stream);
  used.release(make_poisoned(4));
  EXPECT_EQ(dropped_, 0);
  fake_->open_gate(gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 1; }));
  EXPECT_EQ(abandoned_releases(), abandoned);
  backend_->memory()->return_stream(other, stream);
}

TEST_P(DeferredReleaseTest, AStreamsOwnerIsKeptAsLong) {
  const Gated consumer = take_gated_stream();
  auto owner = std::make_shared<int>();
  const std::weak_ptr<int> kept = owner;
  RecordedStreams used;
  used.add(device_, consumer.stream);  // a caller may have recorded the handle alone before
  used.add(device_, consumer.stream, std::move(owner));
  used.release(make_poisoned(4));
  EXPECT_FALSE(kept.expired());
  fake_->open_gate(consumer.gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 1 && kept.expired(); }));
}

TEST_P(DeferredReleaseTest, WorkThatIsDoneIsNotWaitedFor) {
  RecordedStreams used;
  used.add(device_, take_stream());
  fake_->drain(0, {});
  const StreamHandle stream = streams_.back();
  auto memory = make_poisoned(4);
  const EventHandle event = backend_->streams()->record(device_, stream);
  backend_->synchronize(device_, event);
  backend_->streams()->destroy(device_, event);
  used.release(std::move(memory));
  EXPECT_TRUE(eventually([&] { return dropped_ == 1; }));
}

TEST_P(DeferredReleaseTest, AStreamThatIsBehindHoldsNobodyElseUp) {
  const Gated stuck = take_gated_stream();
  const Gated quick = take_gated_stream();
  RecordedStreams one;
  one.add(device_, stuck.stream);
  one.release(make_poisoned(4));
  RecordedStreams other;
  other.add(device_, quick.stream);
  other.release(make_poisoned(4));
  fake_->open_gate(quick.gate);
  EXPECT_TRUE(eventually([] { return pending_releases() == 1; }));
  EXPECT_EQ(dropped_, 1);
  fake_->open_gate(stuck.gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 2; }));
}

TEST_P(DeferredReleaseTest, BlockingReleaseWaitsHere) {
  set_blocking_release(true);
  const Gated consumer = take_gated_stream();
  auto memory = make_poisoned(4);
  const auto read = read_on(consumer.stream, memory.get(), 4);
  RecordedStreams used;
  used.add(device_, consumer.stream);
  std::thread opener([&] { fake_->open_gate(consumer.gate); });
  used.release(std::move(memory));
  EXPECT_EQ(dropped_, 1);
  EXPECT_EQ(*read, Bytes(4, 5));
  opener.join();
}

/// Releases `bytes` of memory that `stream` may use.
void release_bytes(const Device& device, StreamHandle stream, std::shared_ptr<const void> owner,
                   int64_t bytes) {
  release_after(device, stream, std::move(owner), {}, bytes);
}

std::atomic<int> waits_with_guard{0};

void count_guarded_waits() {
  waits_with_guard = 0;
  set_wait_guard([](const std::function<void()>& wait) {
    ++waits_with_guard;
    wait();
  });
}

/// Work that allocates: it waits while too much memory waits for its release.
class Allocating {
 public:
  Allocating()
      : thread_([this] {
          wait_for_release_room();
          has_returned_ = true;
        }) {}
  ~Allocating() { thread_.join(); }
  bool has_returned() const { return has_returned_; }

 private:
  std::atomic<bool> has_returned_{false};
  std::thread thread_;
};

TEST_P(DeferredReleaseTest, VeryManyMakeAllocationsWait) {
  const Gated consumer = take_gated_stream();
  constexpr int kReleases = 1100;
  for (int i = 0; i < kReleases; ++i) release_bytes(device_, consumer.stream, make_poisoned(1), 0);
  EXPECT_EQ(pending_releases(), kReleases) << "who drops memory does not wait";
  count_guarded_waits();
  {
    const Allocating allocating;
    EXPECT_TRUE(eventually([] { return waits_with_guard == 1; }));
    EXPECT_FALSE(allocating.has_returned());
    fake_->open_gate(consumer.gate);
  }
  set_wait_guard(nullptr);
  EXPECT_TRUE(eventually([&] { return dropped_ == kReleases; }));
}

TEST_P(DeferredReleaseTest, ManyBytesMakeAllocationsWait) {
  set_release_limit(100);
  const Gated consumer = take_gated_stream();
  release_bytes(device_, consumer.stream, make_poisoned(1), 60);
  release_bytes(device_, consumer.stream, make_poisoned(1), 40);
  EXPECT_EQ(pending_release_bytes(), 100);
  wait_for_release_room();  // returns
  release_bytes(device_, consumer.stream, make_poisoned(1), 1);
  EXPECT_EQ(pending_releases(), 3);
  count_guarded_waits();
  {
    const Allocating allocating;
    EXPECT_TRUE(eventually([] { return waits_with_guard == 1; }));
    EXPECT_FALSE(allocating.has_returned()) << "the gate is closed";
    fake_->open_gate(consumer.gate);
  }
  set_wait_guard(nullptr);
  EXPECT_TRUE(eventually([&] { return dropped_ == 3; }));
  EXPECT_TRUE(eventually([] { return pending_release_bytes() == 0; }));
}

TEST_P(DeferredReleaseTest, CopiesWaitForRoom) {
  set_release_limit(0);
  const auto source = make_memory(8);
  const Gated consumer = take_gated_stream();
  release_bytes(device_, consumer.stream, make_poisoned(1), 100);
  count_guarded_waits();
  std::thread opener([&] {
    EXPECT_TRUE(eventually([] { return waits_with_guard == 1; }));
    fake_->open_gate(consumer.gate);
  });
  {
    const StreamWork work(require_memory(device_, "copy"), device_, std::nullopt, {});
  }
  EXPECT_EQ(dropped_, 1);
  opener.join();
  set_wait_guard(nullptr);
}

TEST_P(DeferredReleaseTest, WhoeverWaitsGoesOnWhenThereIsRoom) {
  set_release_limit(100);
  const Gated stuck = take_gated_stream();
  const Gated quick = take_gated_stream();
  release_bytes(device_, quick.stream, make_poisoned(1), 100);
  release_bytes(device_, stuck.stream, make_poisoned(1), 100);
  fake_->open_gate(quick.gate);
  wait_for_release_room();
  EXPECT_EQ(pending_release_bytes(), 100) << "the other stream is still stuck";
  fake_->open_gate(stuck.gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 2; }));
}

TEST_P(DeferredReleaseTest, ACaptureIsNotWaitedForWhateverTheLimit) {
  set_release_limit(0);
  const Gated consumer = take_gated_stream();
  const StreamHandle captured = take_stream();
  fake_->set_capturing(captured, true);
  for (int i = 0; i < 2; ++i) release_bytes(device_, captured, make_poisoned(1), 10);
  EXPECT_EQ(pending_release_bytes(), 20);
  wait_for_release_room();  // returns: the capture may be this thread's to end
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_capturing(captured, false);
  EXPECT_TRUE(eventually([&] { return dropped_ == 2; }));
  fake_->open_gate(consumer.gate);
}

/// Work of a consumer on a stream that the consumer does not name.
struct StreamOfConsumer final : ConsumerWork {
  explicit StreamOfConsumer(StreamHandle stream) : stream_(stream) {}
  void order_before(const Device& device, StreamHandle stream) const override {
    wait_event(device, stream, OwnedEvent::record(device, stream_).handle());
    is_recorded = true;
  }
  const StreamHandle stream_;
  mutable std::atomic<bool> is_recorded{false};
};

TEST_P(DeferredReleaseTest, WorkThatMayBeTheCallersIsNotWaitedFor) {
  set_release_limit(0);
  const Gated consumer = take_gated_stream();
  const auto work = std::make_shared<StreamOfConsumer>(consumer.stream);
  release_after_work(device_, work, make_poisoned(1), 10);
  wait_for_release_room();  // returns: a host callback of that work may be what calls this
  EXPECT_TRUE(eventually([&] { return work->is_recorded.load(); }));
  wait_for_release_room();
  EXPECT_EQ(pending_release_bytes(), 10);
  EXPECT_EQ(dropped_, 0);
  fake_->open_gate(consumer.gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 1; }));
}

TEST_P(DeferredReleaseTest, ReleasesOfOneWorkAreAskedForTogether) {
  struct Held final : ConsumerWork {
    explicit Held(std::future<void> begin) : begin_(std::move(begin)) {}
    void order_before(const Device&, StreamHandle) const override {
      if (++calls == 1) begin_.wait();
    }
    std::future<void> begin_;
    mutable std::atomic<int> calls{0};
  };
  std::promise<void> begin;
  const auto work = std::make_shared<Held>(begin.get_future());
  for (int i = 0; i < 20; ++i) release_after_work(device_, work, make_poisoned(1));
  begin.set_value();
  EXPECT_TRUE(eventually([&] { return dropped_ == 20; }));
  EXPECT_LE(work->calls, 2) << "those that come while it asks are asked for together";
}

TEST_P(DeferredReleaseTest, WorkThatCannotBeOrderedIsGivenUp) {
  struct Failing final : ConsumerWork {
    void order_before(const Device&, StreamHandle) const override {
      ++calls;
      throw Error(ErrorKind::kRuntime, "no work");
    }
    mutable std::atomic<int> calls{0};
  };
  const int64_t before = abandoned_releases();
  const auto failing = std::make_shared<Failing>();
  for (int i = 0; i < 3; ++i) release_after_work(device_, failing, std::make_shared<int>(0));
  EXPECT_TRUE(eventually([&] { return abandoned_releases() == before + 3; }));
  EXPECT_LE(failing->calls, 403) << "not once for each release and try";
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
}

TEST_P(DeferredReleaseTest, ASignalEndsTheWait) {
  set_release_limit(0);
  const Gated consumer = take_gated_stream();
  release_bytes(device_, consumer.stream, make_poisoned(1), 1);
  set_interrupt_check([] { throw Error(ErrorKind::kRuntime, "a signal"); });
  testing::expect_error(ErrorKind::kRuntime, "a signal", [] { wait_for_release_room(); });
  set_interrupt_check(nullptr);
  fake_->open_gate(consumer.gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 1; }));
}

TEST_P(DeferredReleaseTest, TheThreadThatLooksAfterReleasesWaitsForNone) {
  set_release_limit(10);
  const Gated first = take_gated_stream();
  const Gated second = take_gated_stream();
  // The owner that is dropped after the first stream is read by the second, and is above the limit.
  std::shared_ptr<const void> owner(this, [&, inner = make_poisoned(1)](const void*) mutable {
    release_bytes(device_, second.stream, std::move(inner), 100);
  });
  release_bytes(device_, first.stream, std::move(owner), 10);
  release_bytes(device_, second.stream, make_poisoned(1), 0);
  fake_->open_gate(first.gate);
  EXPECT_TRUE(eventually([] { return pending_release_bytes() == 100; })) << "nobody waits";
  fake_->open_gate(second.gate);
  EXPECT_TRUE(eventually([&] { return dropped_ == 2; }));
}

TEST_P(DeferredReleaseTest, ALimitIsNotNegative) {
  testing::expect_error(ErrorKind::kValue, "-1 bytes", [] { set_release_limit(-1); });
}

TEST_P(DeferredReleaseTest, ManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::vector<StreamHandle> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(take_stream());
  std::vector<std::shared_ptr<Bytes>> reads(kThreads * kRounds);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < kRounds; ++i) {
        const StreamHandle stream = streams[thread];
        auto memory = make_poisoned(64);
        auto& target = reads[thread * kRounds + i];
        target = std::make_shared<Bytes>(64);
        fake_->enqueue_copy(0, stream, target->data(), memory.get(), 64);
        RecordedStreams used;
        used.add(device_, stream);
        used.add(device_, streams[(thread + 1) % kThreads]);
        used.release(std::move(memory));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return dropped_ == kThreads * kRounds; }));
  for (const auto& read : reads) EXPECT_EQ(*read, Bytes(64, 5));
}

TEST_P(DeferredReleaseTest, AProcessEndsWithWhatWaits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_with_pending = [this] {
    const Gated consumer = take_gated_stream();  // a gate that stays closed
    RecordedStreams used;
    used.add(device_, consumer.stream);
    used.release({this, [](const void*) { std::_Exit(2); }});
    std::exit(pending_releases() == 1 ? 0 : 3);
  };
  EXPECT_EXIT(exit_with_pending(), ::testing::ExitedWithCode(0), "");
}

TEST_P(DeferredReleaseTest, AFailedDeviceKeepsWhatItsWorkMayRead) {
  const Gated consumer = take_gated_stream();
  RecordedStreams used;
  used.add(device_, consumer.stream);
  used.release(make_poisoned(4));
  fake_->enqueue_failure(0, take_stream());
  fake_->drain(0, streams_.back());
  fake_->open_gate(consumer.gate);
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
  EXPECT_EQ(dropped_, 0) << "nobody can tell when it is safe";
  abandoned_ = 1;
  before_.allocations += 1;
}

TEST_P(DeferredReleaseTest, MemoryOfACapturedStreamStaysUntilTheCaptureIsOver) {
  for (const bool blocking : {false, true}) {
    set_blocking_release(blocking);
    dropped_ = 0;
    const StreamHandle captured = take_stream();
    fake_->set_capturing(captured, true);
    RecordedStreams used;
    used.add(device_, captured);
    used.release(make_poisoned(4));
    EXPECT_EQ(pending_releases(), 1);
    EXPECT_EQ(dropped_, 0);
    fake_->set_capturing(captured, false);
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    EXPECT_EQ(dropped_, 1);
    EXPECT_FALSE(fake_->is_capture_broken());
  }
}

TEST_P(DeferredReleaseTest, TheDefaultStreamWaitsForTheCapturesOfOthers) {
  RecordedStreams used;
  used.add(device_, GetParam().default_stream);
  auto memory = make_poisoned(4);
  fake_->set_global_capture(true);
  used.release(std::move(memory));
  EXPECT_EQ(dropped_, 0);
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_global_capture(false);
  EXPECT_TRUE(eventually([&] { return dropped_ == 1; }));
}

}  // namespace
}  // namespace arrowdl
