// Tests many threads on the same memory, for ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/to_arrow.hpp"
#include "arrowdl/to_dlpack.hpp"

namespace arrowdl {
namespace {

constexpr int kThreads = 4;
constexpr int64_t kRows = 1000;

template <typename Body>
void run_on_threads(const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

/// float32 rows whose owner counts its release.
DeviceArray make_floats(std::atomic<int>& releases) {
  auto memory = std::make_shared<std::vector<float>>(kRows, 1.5F);
  std::shared_ptr<const void> owner(memory->data(),
                                    [memory, &releases](const void*) { releases.fetch_add(1); });
  ArrayParts parts;
  parts.length = kRows;
  parts.buffers = {Buffer(), Buffer(owner, memory->data(), kRows * 4)};
  return DeviceArray::import(make_schema(*find_dtype("float32")), make_array(std::move(parts)));
}

float sum(const OwnedTensor& tensor) {
  float total = 0;
  const auto* data = static_cast<const float*>(tensor->data);
  for (int64_t i = 0; i < tensor->shape[0]; ++i) total += data[i];
  return total;
}

TEST(Threads, SliceAndExportOneArray) {
  std::atomic<int> releases{0};
  {
    const DeviceArray array = make_floats(releases);
    run_on_threads([&array](int thread) {
      for (int64_t i = 0; i < 200; ++i) {
        const DeviceArray slice = array.slice(i + thread, 100);
        EXPECT_EQ(sum(to_dlpack(slice)), 150.0F);
        EXPECT_EQ(slice.export_array()->length, 100);
        EXPECT_EQ(slice.export_schema()->n_children, 0);
      }
    });
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
}

TEST(Threads, TheLastOwnerReleasesOnceWhereverItRuns) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> releases{0};
    std::vector<OwnedTensor> tensors;
    {
      const DeviceArray array = make_floats(releases);
      for (int i = 0; i < kThreads; ++i) tensors.push_back(to_dlpack(array.slice(i, 10)));
    }
    EXPECT_EQ(releases, 0);
    run_on_threads([&tensors](int thread) {
      OwnedTensor tensor = std::move(tensors[static_cast<std::size_t>(thread)]);
      EXPECT_EQ(sum(tensor), 15.0F);
    });
    EXPECT_EQ(releases, 1);
  }
}

TEST(Threads, TensorsBecomeArraysOnOtherThreads) {
  std::atomic<int> releases{0};
  {
    const DeviceArray array = make_floats(releases);
    run_on_threads([&array](int) {
      for (int i = 0; i < 200; ++i) {
        const DeviceArray again = to_arrow(to_dlpack(array));
        EXPECT_EQ(again.buffer(1), array.buffer(1));
      }
    });
  }
  EXPECT_EQ(releases, 1);
}

}  // namespace
}  // namespace arrowdl
