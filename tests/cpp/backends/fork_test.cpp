// Tests that a forked child does not call the driver of its parent.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "support/device_test.hpp"

namespace arrowdl {
namespace {

using testing::DeviceTest;

class ForkTest : public DeviceTest {
 protected:
  /// Runs `body` in a forked child and expects it to return true.
  template <typename Body>
  void expect_in_child(const Body& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body() ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
};
INSTANTIATE_DEVICE_TESTS(ForkTest);

TEST_P(ForkTest, AChildGivesNothingBack) {
  const StreamHandle stream = take_stream();
  const EventHandle event = backend_->streams()->record(device_, stream);
  void* memory = backend_->memory()->allocate(device_, 8, stream);
  expect_in_child([&] {
    backend_->streams()->destroy(device_, event);
    backend_->memory()->free(device_, memory, stream);
    backend_->memory()->return_stream(device_, stream);
    return fake_->calls_of_forked_child() == 0;
  });
  backend_->memory()->free(device_, memory, stream);
  backend_->streams()->destroy(device_, event);
}

TEST_P(ForkTest, AChildIsToldWhatToDo) {
  const StreamHandle stream = take_stream();
  const std::function<void()> calls[] = {[&] { backend_->streams()->record(device_, stream); },
                                         [&] { backend_->find_device(stream.get()); }};
  for (const auto& call : calls) {
    expect_in_child([&] {
      try {
        call();
      } catch (const Error& error) {
        return error.kind() == ErrorKind::kRuntime && fake_->calls_of_forked_child() == 0 &&
               std::string(error.what()).find("spawn") != std::string::npos;
      }
      return false;
    });
  }
}

TEST_P(ForkTest, AChildKeepsMemoryThatStreamsUse) {
  const Gated gated = take_gated_stream();
  auto* used = new RecordedStreams;
  used->add(device_, gated.stream);
  bool is_dropped = false;
  std::shared_ptr<const void> owner(&is_dropped, [&](const void*) { is_dropped = true; });
  expect_in_child([&] {
    used->release(std::move(owner));
    return !is_dropped && fake_->calls_of_forked_child() == 0;
  });
  fake_->open_gate(gated.gate);
  used->release(std::move(owner));
  EXPECT_TRUE(testing::eventually([] { return pending_releases() == 0; }));
  EXPECT_TRUE(is_dropped);
  delete used;
}

struct CountedWork final : ConsumerWork {
  explicit CountedWork(std::atomic<int>& calls) : calls_(calls) {}
  void order_before(const Device&, StreamHandle) const override { ++calls_; }
  std::atomic<int>& calls_;
};

TEST_P(ForkTest, AChildAsksForNoWorkOfAConsumer) {
  std::atomic<int> calls{0};
  std::atomic<bool> is_dropped{false};
  auto work = std::make_shared<CountedWork>(calls);
  std::shared_ptr<const void> owner(&is_dropped, [&](const void*) { is_dropped = true; });
  expect_in_child([&] {
    const int64_t abandoned = abandoned_releases();
    release_after_work(device_, work, owner);
    return abandoned_releases() == abandoned + 1 && calls == 0;
  });
  release_after_work(device_, std::move(work), std::move(owner));
  EXPECT_TRUE(testing::eventually([&] { return is_dropped.load(); }));
  EXPECT_EQ(calls, 1);
}

TEST_P(ForkTest, AChildKeepsWhatWaitedWhenItWasForked) {
  const Gated gated = take_gated_stream();
  std::atomic<bool> is_dropped{false};
  RecordedStreams used;
  used.add(device_, gated.stream);
  used.release({&is_dropped, [&](const void*) { is_dropped = true; }});
  EXPECT_EQ(pending_releases(), 1);
  expect_in_child([&] {
    return pending_releases() == 0 && !is_dropped && fake_->calls_of_forked_child() == 0;
  });
  EXPECT_EQ(pending_releases(), 1);
  fake_->open_gate(gated.gate);
  EXPECT_TRUE(testing::eventually([&] { return is_dropped.load(); }));
}

}  // namespace
}  // namespace arrowdl
