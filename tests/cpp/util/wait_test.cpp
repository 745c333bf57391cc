// Tests that every wait, and every callback that may wait, releases the caller's locks.
#include "arrowdl/wait.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "arrowdl/stream.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

static_assert(!std::is_default_constructible_v<Waiting>, "only wait_guarded makes one");

std::atomic<int> guarded{0};
thread_local int depth = 0;

class WaitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    guarded = 0;
    set_wait_guard([](const std::function<void()>& wait) {
      ++guarded;
      ++depth;
      wait();
      --depth;
    });
  }
  void TearDown() override { set_wait_guard(nullptr); }
};

/// One array without rows, which is returned when the test allows it.
class GatedStream final : public ArrayStream {
 public:
  explicit GatedStream(const DeviceArray& array, std::atomic<bool>& is_dropped)
      : ArrayStream(share_schema(array.export_schema()), kDLCPU),
        array_(array),
        is_dropped_(is_dropped) {}
  ~GatedStream() override { is_dropped_ = true; }

  DeviceArray next(int64_t) override {
    EXPECT_GT(depth, 0) << "read with the caller's lock";
    entered.set_value();
    opened.get_future().wait();
    return array_;
  }

  std::promise<void> entered;
  std::promise<void> opened;

 private:
  const DeviceArray array_;
  std::atomic<bool>& is_dropped_;
};

DeviceArray sample_array() { return make_empty(share_schema(field("l"))); }

TEST_F(WaitTest, WhatHasNoGuardIsCalledAsItIs) {
  set_wait_guard(nullptr);
  int calls = 0;
  wait_guarded([&](const Waiting&) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_F(WaitTest, WhatIsThrownPasses) {
  EXPECT_THROW(wait_guarded([](const Waiting&) { throw std::runtime_error("no"); }),
               std::runtime_error);
  depth = 0;
}

TEST_F(WaitTest, AReleaseOfAnExportedStreamWaitsForNobodyInside) {
  std::atomic<bool> is_dropped{false};
  auto source = std::make_unique<GatedStream>(sample_array(), is_dropped);
  GatedStream& gated = *source;
  OwnedArrayStream exported = export_stream(std::move(source));
  ArrowArrayStream* stream = exported.get();
  OwnedArray array;
  int code = -1;
  std::thread reader([&] { code = stream->get_next(stream, array.get()); });
  gated.entered.get_future().wait();
  exported.reset();
  EXPECT_EQ(guarded, 2) << "get_next and release";
  EXPECT_FALSE(is_dropped) << "somebody is inside";
  gated.opened.set_value();
  reader.join();
  EXPECT_TRUE(is_dropped);
  EXPECT_EQ(code, 0);
  EXPECT_NE(array->release, nullptr);
}

TEST_F(WaitTest, PrefetchingWaitsByTheGuard) {
  const OwnedStream stream = prefetch(make_stream({sample_array()}), 1);
  EXPECT_TRUE(stream->next());
  EXPECT_EQ(guarded, 1);
  EXPECT_FALSE(stream->next());
  EXPECT_EQ(guarded, 2);
}

}  // namespace
}  // namespace arrowdl::testing
