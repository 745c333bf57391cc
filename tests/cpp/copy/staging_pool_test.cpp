// Tests copies from pageable memory through pinned memory, on the fake drivers, which read pinned
// memory when they execute a copy, and overwrite it when it is freed.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "arrowdl/copy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_arrow.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/device_test.hpp"
#include "support/expect_error.hpp"

namespace arrowdl {
namespace {

using testing::eventually;
using testing::expect_error;
using Bytes = std::vector<uint8_t>;

constexpr int64_t kSmallest = int64_t{64} << 10;  ///< blocks
constexpr int64_t kLargest = int64_t{4} << 20;

std::atomic<int> guarded_waits{0};

class StagingTest : public testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    host_ = Device{GetParam().host, 0};
    lost_ = staging_bytes();
  }

  static DeviceArray make_array(const Bytes& bytes) {
    uint8_t* memory;
    const auto size = static_cast<int64_t>(bytes.size());
    const Buffer buffer = Buffer::allocate(size, &memory);
    if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
    return DeviceArray::make_primitive(*find_dtype("uint8"), size, buffer, Device{}, {});
  }

  static void overwrite(const DeviceArray& array, uint8_t value) {
    std::memset(const_cast<uint8_t*>(data_of(array)), value,
                static_cast<std::size_t>(array.length()));
  }

  static const uint8_t* data_of(const DeviceArray& array) {
    return array.buffer_as<uint8_t>(1) + array.offset();
  }

  static Bytes read(const DeviceArray& copied) {
    CopyOptions options;
    options.pin = false;  // the blocks are those of copies to the device
    const DeviceArray back = copy_array(copied, Device{}, options);
    return {data_of(back), data_of(back) + back.length()};
  }

  /// Bytes that differ between blocks.
  static Bytes make_pattern(int64_t size) {
    Bytes pattern(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      pattern[i] = static_cast<uint8_t>((i * 2654435761U) >> 13);
    }
    return pattern;
  }

  DeviceArray copy_on(StreamHandle stream, const DeviceArray& array) const {
    CopyOptions options;
    options.stream = stream;
    return copy_array(array, device_, options);
  }

  // Earlier tests of this process made the driver lose blocks, which count against the limit.

  /// The bytes of the blocks, without lost ones.
  int64_t pinned() const { return staging_bytes() - lost_; }
  /// Limits `pinned()`.
  void limit_pinned(int64_t bytes) const { set_staging_limit(lost_ + bytes); }
  static void count_guarded_waits() {
    guarded_waits = 0;
    set_wait_guard([](const std::function<void()>& wait) {
      ++guarded_waits;
      wait();
    });
  }

  int allocations() const { return fake_->count().allocations - before_.allocations; }

  Device host_;
  int64_t lost_ = 0;
};
INSTANTIATE_DEVICE_TESTS(StagingTest);

TEST_P(StagingTest, TheSourceHasBeenReadAndNobodyWaits) {
  const Gated gated = take_gated_stream();
  const DeviceArray source = make_array({1, 2, 3});
  const DeviceArray copied = copy_on(gated.stream, source);
  EXPECT_FALSE(copied.is_ready());
  EXPECT_EQ(pinned(), kSmallest);
  overwrite(source, 9);
  fake_->open_gate(gated.gate);
  EXPECT_EQ(read(copied), (Bytes{1, 2, 3}));
}

TEST_P(StagingTest, ABlockIsUsedAgainOnceItsCopyIsDone) {
  const Gated gated = take_gated_stream();
  const DeviceArray first = copy_on(gated.stream, make_array(Bytes(100, 1)));
  const DeviceArray second = copy_array(make_array(Bytes(100, 2)), device_);
  second.synchronize();
  EXPECT_EQ(pinned(), 2 * kSmallest) << "the first is at the gate";
  fake_->open_gate(gated.gate);
  EXPECT_EQ(read(first), Bytes(100, 1));
  EXPECT_EQ(read(second), Bytes(100, 2));
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
  for (uint8_t round = 3; round < 20; ++round) {
    EXPECT_EQ(read(copy_array(make_array(Bytes(100, round)), device_)), Bytes(100, round));
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
  }
  EXPECT_EQ(pinned(), 2 * kSmallest);
}

TEST_P(StagingTest, LargeArraysGoBlockByBlock) {
  for (const int64_t size : {kLargest - 1, kLargest, kLargest + 1, 3 * kLargest + 12345}) {
    const Bytes pattern = make_pattern(size);
    const DeviceArray copied = copy_array(make_array(pattern), device_);
    EXPECT_TRUE(read(copied) == pattern) << size;
  }
}

/// Each column begins where the one before it ended, in the middle of a block.
TEST_P(StagingTest, ManyColumnsAreOneCopy) {
  std::vector<std::string> names;
  std::vector<DeviceArray> columns;
  for (int i = 0; i < 40; ++i) {
    names.push_back(std::to_string(i));
    columns.push_back(make_array(make_pattern(200'001)));
  }
  const DeviceArray rows = make_struct(names, columns);
  const int before = fake_->copies();
  const DeviceArray copied = copy_array(rows, device_);
  EXPECT_LT(fake_->copies() - before, 40) << "one for each column";
  for (int64_t i = 0; i < 40; ++i) EXPECT_TRUE(read(copied.field(i)) == make_pattern(200'001));
}

TEST_P(StagingTest, TheLimitHoldsAndTheWaitGoesThroughTheGuard) {
  limit_pinned(kSmallest);
  const Gated gated = take_gated_stream();
  const DeviceArray first = copy_on(gated.stream, make_array({1}));
  count_guarded_waits();
  std::atomic<bool> is_copied{false};
  DeviceArray second;
  std::thread other([&] {
    second = copy_array(make_array({2}), device_);
    is_copied = true;
  });
  EXPECT_TRUE(eventually([] { return guarded_waits == 1; }));
  EXPECT_FALSE(is_copied);
  EXPECT_EQ(pinned(), kSmallest);
  fake_->open_gate(gated.gate);
  other.join();
  set_wait_guard(nullptr);
  EXPECT_EQ(pinned(), kSmallest);
  EXPECT_EQ(read(first), Bytes{1});
  EXPECT_EQ(read(second), Bytes{2});
}

TEST_P(StagingTest, ALargeCopyWaitsForBlocksOfItsOwn) {
  limit_pinned(2 * kLargest);
  const Gated gated = take_gated_stream();
  const Bytes pattern = make_pattern(6 * kLargest);
  const DeviceArray source = make_array(pattern);
  count_guarded_waits();
  DeviceArray copied;
  std::thread other([&] { copied = copy_on(gated.stream, source); });
  EXPECT_TRUE(eventually([] { return guarded_waits == 1; }));
  EXPECT_EQ(pinned(), 2 * kLargest);
  fake_->open_gate(gated.gate);
  other.join();
  set_wait_guard(nullptr);
  EXPECT_EQ(pinned(), 2 * kLargest);
  EXPECT_TRUE(read(copied) == pattern);
}

TEST_P(StagingTest, OneBlockIsAlwaysAllowed) {
  limit_pinned(0);
  const Bytes pattern = make_pattern(2 * kLargest + 1);
  EXPECT_TRUE(read(copy_array(make_array(pattern), device_)) == pattern);
  EXPECT_TRUE(eventually([&] { return pinned() == 0; }));
}

TEST_P(StagingTest, AnIdleBlockIsReplacedByOneOfAnotherSize) {
  limit_pinned(kLargest);
  copy_array(make_array({1}), device_).synchronize();
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
  const Bytes pattern = make_pattern(kLargest);
  EXPECT_TRUE(read(copy_array(make_array(pattern), device_)) == pattern);
  EXPECT_EQ(pinned(), kLargest);
}

TEST_P(StagingTest, ALowerLimitGivesBack) {
  copy_array(make_array({1}), device_).synchronize();
  EXPECT_TRUE(eventually([&] { return pending_releases() == 0 && allocations() == 1; }));
  limit_pinned(0);
  EXPECT_EQ(allocations(), 0);
  EXPECT_EQ(pinned(), 0);
}

TEST_P(StagingTest, ALimitIsNotNegative) {
  expect_error(ErrorKind::kValue, "a staging limit of -1 bytes", [] { set_staging_limit(-1); });
}

TEST_P(StagingTest, PinnedMemoryGoesAsItIs) {
  const DeviceArray source = copy_array(make_array({1, 2}), host_);
  EXPECT_EQ(read(copy_array(source, device_)), (Bytes{1, 2}));
  EXPECT_EQ(pinned(), 0);
  const DeviceArray labelled = copy_array(source, Device{});
  EXPECT_EQ(read(copy_array(labelled, device_)), (Bytes{1, 2}));
  EXPECT_EQ(pinned() == 0, GetParam().device == kDLCUDA) << "HIP's answer is not asked for";
}

TEST_P(StagingTest, NothingIsPinnedOnRequest) {
  CopyOptions options;
  options.pin = false;
  EXPECT_EQ(read(copy_array(make_array({1, 2}), device_, options)), (Bytes{1, 2}));
  EXPECT_EQ(pinned(), 0);
}

TEST_P(StagingTest, WhereNoMemoryCanBePinnedTheDriverHelpsItself) {
  fake_->set_pinning(false);
  const Bytes pattern = make_pattern(kLargest + 1);
  EXPECT_TRUE(read(copy_array(make_array(pattern), device_)) == pattern);
  EXPECT_EQ(pinned(), 0);
}

TEST_P(StagingTest, TensorsAreStagedToo) {
  const Gated gated = take_gated_stream();
  const auto memory = make_memory(3, gated.stream);
  const DeviceArray source = make_array({1, 2, 3});
  OwnedTensor tensor = to_dlpack(source);
  TensorView view = view_tensor(*tensor);
  view.data = memory.get();
  view.device = device_;
  const OwnedTensor target = make_tensor(view, memory, 0);
  copy_tensor(std::move(tensor), *target, gated.stream);
  EXPECT_EQ(pinned(), kSmallest);
  overwrite(source, 9);
  const auto seen = read_on(gated.stream, memory.get(), 3);
  fake_->open_gate(gated.gate);
  fake_->drain(0, gated.stream);
  EXPECT_EQ(*seen, (Bytes{1, 2, 3}));
}

TEST_P(StagingTest, ManyThreadsShareFewBlocks) {
  constexpr int kThreads = 4;
  limit_pinned(2 * kSmallest);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 50; ++round) {
        const Bytes bytes(1000, static_cast<uint8_t>(thread * 50 + round));
        EXPECT_EQ(read(copy_array(make_array(bytes), device_)), bytes);
        EXPECT_LE(pinned(), (2 + kThreads) * kSmallest);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(StagingTest, AForkedChildLeavesTheBlocksAlone) {
  copy_array(make_array({1}), device_).synchronize();
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
  const pid_t child = fork();
  if (child == 0) {
    const bool is_empty = staging_bytes() == 0;
    set_staging_limit(0);
    _exit(is_empty && fake_->calls_of_forked_child() == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pinned(), kSmallest);
}

/// Each call of the driver fails in turn. The copy raises or has the right bytes, and everything is
/// released but memory whose last use cannot be known.
TEST_P(StagingTest, EveryCallMayFail) {
  const Bytes pattern = make_pattern(kLargest + 1);
  const DeviceArray array = make_array(pattern);
  int failed = 0;
  for (int n = 1;; ++n) {
    SCOPED_TRACE(n);
    const int kept = allocations();
    const int64_t abandoned = abandoned_releases();
    constexpr int kUnknownFailure = 999;
    fake_->fail_call(n, kUnknownFailure);
    try {
      const DeviceArray copied = copy_array(array, device_);
      fake_->drain(0, {});
      if (!fake_->has_failed()) break;
      fake_->fail_call(0, 0);
      ASSERT_TRUE(read(copied) == pattern);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("fail"), std::string::npos) << error.what();
      ++failed;
    }
    fake_->fail_call(0, 0);
    ASSERT_TRUE(eventually([] { return pending_releases() == 0; }));
    empty_staging_pool();
    if (abandoned_releases() == abandoned) {
      ASSERT_EQ(allocations(), kept);
    }
  }
  fake_->fail_call(0, 0);
  EXPECT_GE(failed, 20);
  accept_abandoned();
}

/// The calls that free blocks fail in turn: the driver has freed them nevertheless, or could not be
/// called.
TEST_P(StagingTest, GivingBackMayFail) {
  for (int n = 1; n < 12; ++n) {
    SCOPED_TRACE(n);
    copy_array(make_array({1}), device_).synchronize();
    ASSERT_TRUE(eventually([] { return pending_releases() == 0; }));
    constexpr int kUnknownFailure = 999;
    fake_->fail_call(n, kUnknownFailure);
    empty_staging_pool();
    fake_->fail_call(0, 0);
    EXPECT_EQ(pinned(), 0);
    EXPECT_EQ(read(copy_array(make_array({2}), device_)), Bytes{2});
    ASSERT_TRUE(eventually([] { return pending_releases() == 0; }));
    empty_staging_pool();
  }
  before_.allocations = fake_->count().allocations;
}

}  // namespace
}  // namespace arrowdl
