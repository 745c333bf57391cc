// A fixture for tests of devices: one fake driver, arrowdl's backend on it, and checks that all is
// released and that the caller's context is restored.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/deferred_release.hpp"
#include "arrowdl/event.hpp"
#include "fake_driver/fake_driver.hpp"
#include "support/expect_error.hpp"

namespace arrowdl::testing {

struct Runtime {
  const char* name;
  int32_t device;  ///< device types
  int32_t host;
  const char* library;          ///< the fake's file
  StreamHandle default_stream;  ///< DLPack's number
  bool has_contexts;

  friend std::ostream& operator<<(std::ostream& out, const Runtime& runtime) {
    return out << runtime.name;
  }
};

inline const Runtime kCuda{
    "Cuda", kDLCUDA, kDLCUDAHost, FAKE_CUDA_LIBRARY, StreamHandle(uintptr_t{1}), true};
inline const Runtime kHip{"Hip", kDLROCM, kDLROCMHost, FAKE_HIP_LIBRARY, {}, false};

inline void* load_library(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) ADD_FAILURE() << dlerror();
  return library;
}

inline FakeDriver& load_fake(const char* file) {
  void* const symbol = dlsym(load_library(file), "arrowdl_fake_driver");
  return *reinterpret_cast<FakeDriver* (*)()>(symbol)();
}

/// Waits until `condition` holds, 20 s at most. Returns whether it holds.
template <typename Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < 20000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class DeviceTest : public ::testing::TestWithParam<Runtime> {
 protected:
  void SetUp() override {
    fake_ = &load_fake(GetParam().library);
    fake_->set_current_context(-1);
    std::string why_not;
    backend_ = find_backend(GetParam().device, &why_not);
    ASSERT_NE(backend_, nullptr) << why_not;
    device_ = Device{GetParam().device, 0};
    before_ = fake_->count();
  }

  void TearDown() override {
    for (const StreamHandle stream : streams_) backend_->memory()->return_stream(device_, stream);
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    EXPECT_EQ(fake_->misuses(), 0);
    fake_->reset();
    empty_staging_pool();
    const FakeCounts after = fake_->count();
    EXPECT_EQ(after.events, before_.events + abandoned_);
    EXPECT_EQ(after.allocations, before_.allocations);
    EXPECT_EQ(fake_->current_context(), GetParam().has_contexts ? 0 : 1);
    EXPECT_EQ(fake_->capture_mode(), 0);
    set_blocking_release(false);
    set_release_limit(kDefaultReleaseLimit);
  }

  /// Excludes from the checks what failures of the driver made arrowdl abandon so far.
  void accept_abandoned() {
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    abandoned_ = fake_->count().events - before_.events;
    empty_staging_pool();  // abandoned releases keep their blocks
    before_.allocations = fake_->count().allocations;
  }

  static void empty_staging_pool() {
    set_staging_limit(0);
    set_staging_limit(kDefaultStagingLimit);
  }

  /// A stream of arrowdl's that the test returns at its end.
  StreamHandle take_stream() {
    streams_.push_back(backend_->memory()->acquire_stream(device_));
    return streams_.back();
  }

  /// A stream with a closed gate.
  struct Gated {
    StreamHandle stream;
    int gate;
  };
  Gated take_gated_stream() {
    const Gated gated{take_stream(), fake_->close_gate()};
    fake_->enqueue_gate(0, gated.stream, gated.gate);
    return gated;
  }

  /// Device memory. The last owner frees it, after the work that `stream` holds then.
  std::shared_ptr<uint8_t> make_memory(int64_t size, StreamHandle stream = {}) {
    const StreamHandle at = stream.is_null() ? backend_->memory()->work_stream(device_) : stream;
    auto* const memory = static_cast<uint8_t*>(backend_->memory()->allocate(device_, size, at));
    return {memory, [this, at](uint8_t* bytes) { backend_->memory()->free(device_, bytes, at); }};
  }

  void fill(StreamHandle stream, const std::shared_ptr<uint8_t>& memory, uint8_t value,
            std::size_t size) {
    fake_->enqueue_fill(0, stream, memory.get(), value, size);
  }

  /// The bytes that a consumer's stream reads.
  std::shared_ptr<std::vector<uint8_t>> read_on(StreamHandle stream, const void* memory,
                                                std::size_t size) {
    auto target = std::make_shared<std::vector<uint8_t>>(size);
    read_.push_back(target);
    fake_->enqueue_copy(0, stream, target->data(), memory, size);
    return target;
  }

  FakeDriver* fake_ = nullptr;
  Backend* backend_ = nullptr;
  Device device_;
  FakeCounts before_;
  int abandoned_ = 0;  ///< events that a test does not release, on purpose
  std::vector<StreamHandle> streams_;
  std::vector<std::shared_ptr<std::vector<uint8_t>>> read_;
};

inline std::string runtime_name(const ::testing::TestParamInfo<Runtime>& info) {
  return info.param.name;
}

#define INSTANTIATE_DEVICE_TESTS(suite)                                                        \
  INSTANTIATE_TEST_SUITE_P(Fake, suite,                                                        \
                           ::testing::Values(arrowdl::testing::kCuda, arrowdl::testing::kHip), \
                           arrowdl::testing::runtime_name)

}  // namespace arrowdl::testing
