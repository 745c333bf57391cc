// Tests synchronizers: functions that wait for events of devices without a backend.
#include "arrowdl/backends.hpp"
#include "arrowdl/deferred_release.hpp"
#include "arrowdl/event.hpp"
#include "support/device_test.hpp"

namespace arrowdl {
namespace {

class SynchronizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    register_synchronizer(kDLExtDev, [this](EventHandle event, int64_t id) {
      waited_.emplace_back(event.get(), id);
    });
  }
  void TearDown() override { register_synchronizer(kDLExtDev, {}); }

  const Device device_{kDLExtDev, 3};
  int object_ = 0;
  const EventHandle event_{&object_};
  std::vector<std::pair<void*, int64_t>> waited_;
};

TEST_F(SynchronizerTest, WaitsOnTheHost) {
  EXPECT_FALSE(is_complete(device_, event_)) << "it cannot tell";
  synchronize_event(device_, event_);
  wait_event(device_, StreamHandle(), event_);
  EXPECT_FALSE(OwnedEvent::join(device_, {event_, EventHandle()}));
  EXPECT_EQ(waited_, (decltype(waited_)(3, {&object_, 3})));
}

TEST_F(SynchronizerTest, HasNeitherStreamsNorMemoryNorKernels) {
  Backend* const backend = find_backend(kDLExtDev);
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(backend->streams(), nullptr);
  EXPECT_EQ(backend->memory(), nullptr);
  EXPECT_EQ(find_kernels(device_), nullptr);
  const auto expect_limits = [](const char* verb, const auto& call) {
    testing::expect_error(ErrorKind::kBuffer, verb, call);
    testing::expect_error(ErrorKind::kBuffer, "a synchronizer for it and nothing else", call);
  };
  expect_limits("cannot record the work", [&] { OwnedEvent::record(device_, StreamHandle()); });
  expect_limits("cannot copy on ext_dev:3", [&] { require_memory(device_, "copy"); });
  expect_limits("cannot keep memory", [&] { RecordedStreams().add(device_, StreamHandle()); });
}

TEST_F(SynchronizerTest, IsGoneOnceRemoved) {
  Backend* const backend = find_backend(kDLExtDev);
  register_synchronizer(kDLExtDev, {});
  EXPECT_EQ(find_backend(kDLExtDev), nullptr);
  testing::expect_error(ErrorKind::kBuffer, "register_synchronizer",
                        [&] { synchronize_event(device_, event_); });
  testing::expect_error(ErrorKind::kBuffer, "was removed", [&] {
    wait_guarded([&](const Waiting&) { backend->synchronize(device_, event_); });
  });
}

TEST(Synchronizer, IsRefusedWhereThereIsNothingToWaitFor) {
  const Synchronizer nothing = [](EventHandle, int64_t) {};
  testing::expect_error(ErrorKind::kValue, "is unknown",
                        [&] { register_synchronizer(0, nothing); });
  testing::expect_error(ErrorKind::kValue, "defines no events",
                        [&] { register_synchronizer(kDLCPU, nothing); });
  testing::expect_error(ErrorKind::kValue, "waits for events of cuda itself",
                        [&] { register_synchronizer(kDLCUDA, nothing); });
}

}  // namespace
}  // namespace arrowdl
