// Tests what real GPUs do with memory that one device alone does not show: peers, pools, the
// memory of others, managed memory, kernels that do not load, waits on the host.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "arrowdl/allocator.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"
#include "arrowdl/wait.hpp"
#include "support/build_array.hpp"
#include "support/device_test.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"
#include "sync/stream_work.hpp"

namespace arrowdl {
namespace {

using testing::Builder;
using testing::eventually;
using testing::expect_error;
using testing::read_rows;
using testing::Values;
using Bytes = std::vector<uint8_t>;

constexpr int64_t kMebibyte = int64_t{1} << 20;

class RealMemoryTest : public testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    host_ = Device{GetParam().host, 0};
    second_ = Device{GetParam().device, 1};
  }
  void TearDown() override {
    fake_->set_capacity(UINT64_MAX);
    DeviceTest::TearDown();
  }

  bool is_cuda() const { return GetParam().device == kDLCUDA; }

  static DeviceArray make_bytes(const Bytes& bytes) {
    uint8_t* memory;
    const auto size = static_cast<int64_t>(bytes.size());
    const Buffer buffer = Buffer::allocate(size, &memory);
    if (size > 0) std::memcpy(memory, bytes.data(), bytes.size());
    return DeviceArray::make_primitive(*find_dtype("uint8"), size, buffer, Device{}, {});
  }

  static const uint8_t* data_of(const DeviceArray& array) {
    return array.buffer_as<uint8_t>(1) + array.offset();
  }

  static Bytes read(const DeviceArray& array) {
    const DeviceArray here = copy_array(array, Device{});
    return {data_of(here), data_of(here) + here.length()};
  }

  static Bytes pattern(int64_t size) {
    Bytes bytes(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>((i * 2654435761U) >> 13);
    return bytes;
  }

  void settle() const {
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
  }

  Device host_;
  Device second_;
};
INSTANTIATE_DEVICE_TESTS(RealMemoryTest);

// ---------------------------------------------------------------- peers (item 4)

TEST_P(RealMemoryTest, MemoryGoesToAnotherDeviceWithAndWithoutPeers) {
  for (const bool has_peers : {true, false}) {
    SCOPED_TRACE(has_peers);
    fake_->set_peer_access(has_peers);
    const Bytes bytes = pattern(1000);
    const DeviceArray there = copy_array(make_bytes(bytes), device_);
    EXPECT_EQ(read(copy_array(there, second_)), bytes);
    EXPECT_EQ(read(copy_array(make_bytes(bytes), second_)), bytes);
    EXPECT_EQ(read(copy_array(copy_array(there, second_), device_)), bytes);
  }
}

/// What torch does with memory that it did not allocate: a plain copy on the source's stream.
TEST_P(RealMemoryTest, OthersCopyOurMemoryBetweenPeers) {
  const Bytes bytes = pattern(100);
  const DeviceArray there = copy_array(make_bytes(bytes), device_);
  there.synchronize();
  MemoryOps& memory = *backend_->memory();
  const StreamHandle stream = memory.acquire_stream(second_);
  void* target = memory.allocate(second_, 100, stream);
  if (is_cuda()) {
    using Copy = int (*)(void*, const void*, std::size_t, void*);
    void* library = testing::load_library(GetParam().library);
    const auto copy = reinterpret_cast<Copy>(dlsym(library, "cuMemcpyAsync"));
    fake_->set_current_context(1);
    EXPECT_EQ(copy(target, data_of(there), 100, stream.get()), 0);
    fake_->set_current_context(-1);
    fake_->drain(1, stream);  // arrowdl does not know of this copy when it frees the source
  }
  memory.free(second_, target, stream);
  memory.return_stream(second_, stream);
}

/// Memory of another library's pool, and of cuMemMap.
TEST_P(RealMemoryTest, ForeignMemoryWithoutAccessIsCopiedToo) {
  for (void* foreign : {fake_->allocate_elsewhere(0, 100), fake_->allocate_mapped(0, 100)}) {
    std::memset(foreign, 7, 100);
    {
      const Buffer buffer(nullptr, static_cast<uint8_t*>(foreign), 100);
      const DeviceArray array =
          DeviceArray::make_primitive(*find_dtype("uint8"), 100, buffer, device_, {});
      for (const bool has_peers : {true, false}) {
        fake_->set_peer_access(has_peers);
        EXPECT_EQ(read(copy_array(array, second_)), Bytes(100, 7));
      }
    }
    settle();
    fake_->free_elsewhere(foreign);
  }
}

/// The buffers of an array may be of several allocators.
TEST_P(RealMemoryTest, EachBufferIsAskedForItsAccess) {
  void* foreign = fake_->allocate_elsewhere(0, 100);
  std::memset(foreign, 7, 100);
  {
    const DeviceArray mask = copy_array(make_bytes(Bytes(13, 0xFF)), device_);
    mask.synchronize();
    ArrayParts parts;
    parts.length = 100;
    parts.null_count = 0;
    parts.buffers.push_back(Buffer(mask.storage(), data_of(mask), 13));
    parts.buffers.push_back(Buffer(nullptr, static_cast<uint8_t*>(foreign), 100));
    const DeviceArray array =
        DeviceArray::import(mask.export_schema(), make_array(std::move(parts)), device_);
    EXPECT_EQ(read(copy_array(array, second_)), Bytes(100, 7));
  }
  settle();
  fake_->free_elsewhere(foreign);
}

// ---------------------------------------------------------------- pools (items 11, 16)

TEST_P(RealMemoryTest, ThePoolKeepsMemoryWhenAStreamIsSynchronized) {
  const DeviceArray array = make_bytes(pattern(kMebibyte));
  copy_array(array, device_).synchronize();
  settle();
  const int before = fake_->growths();
  const StreamHandle stream = take_stream();
  for (int i = 0; i < 5; ++i) {
    backend_->streams()->synchronize_stream(device_, stream);  // gives back what the pool may not
    copy_array(array, device_).synchronize();                  // keep
    settle();
  }
  EXPECT_EQ(fake_->growths(), before);
}

TEST_P(RealMemoryTest, OutOfMemoryGivesBackWhatThePoolKeeps) {
  const DeviceArray array = make_bytes(pattern(kMebibyte));
  copy_array(array, device_).synchronize();
  settle();
  // The other device type of the card takes from the same memory.
  fake_->set_capacity(static_cast<uint64_t>(2 * kMebibyte));
  const DeviceArray larger = make_bytes(pattern(2 * kMebibyte));
  EXPECT_EQ(read(copy_array(larger, device_)), pattern(2 * kMebibyte));
}

TEST_P(RealMemoryTest, OutOfMemoryWaitsForWhatIsAboutToBeReleased) {
  const DeviceArray array = make_bytes(pattern(kMebibyte));
  const Gated consumer = take_gated_stream();
  backend_->memory()->free_cache(device_);  // of the tests before
  fake_->set_capacity(static_cast<uint64_t>(2 * kMebibyte));
  RecordedStreams used;
  used.add(device_, consumer.stream);
  used.release(std::make_shared<DeviceArray>(copy_array(array, device_)));
  const DeviceArray larger = make_bytes(pattern(2 * kMebibyte));
  // The consumer is slower than the patience of an allocation, which is a second.
  expect_error(ErrorKind::kMemory, "memory", [&] { copy_array(larger, device_); });
  EXPECT_GE(pending_releases(), 1);

  static std::atomic<bool> waits{false};
  waits = false;
  set_wait_guard([](const std::function<void()>& wait) {
    waits = true;
    wait();
  });
  std::thread opener([&] {
    EXPECT_TRUE(eventually([] { return waits.load(); }));
    fake_->open_gate(consumer.gate);
  });
  const DeviceArray copied = copy_array(larger, device_);
  opener.join();
  set_wait_guard(nullptr);
  EXPECT_EQ(read(copied), pattern(2 * kMebibyte));
}

// ---------------------------------------------------------------- allocators (item 12)

TEST_P(RealMemoryTest, AnAllocatorAligns) {
  const auto memory = make_memory(256);
  StreamWork work(require_memory(device_, "copy"), device_, std::nullopt, {});
  const Allocator off_by_eight = [&](const Device&, int64_t) {
    AllocatedMemory made;
    made.address = memory.get() + 8;
    return made;
  };
  expect_error(ErrorKind::kBuffer, "not a multiple of 64",
               [&] { work.allocate(device_, 100, off_by_eight); });
}

// ---------------------------------------------------------------- managed memory (item 9)

TEST_P(RealMemoryTest, ManagedMemoryIsReadOnlyWhereTheHostMay) {
  if (!is_cuda()) GTEST_SKIP() << "ROCm has no device type for it";
  const Device managed{kDLCUDAManaged, 0};
  const Bytes bytes = pattern(100);
  const DeviceArray there = copy_array(make_bytes(bytes), managed);
  there.synchronize();
  EXPECT_TRUE(is_host_readable(managed));
  EXPECT_EQ(data_of(copy_array(there, Device{})), data_of(there));
  fake_->set_concurrent_managed(false);
  EXPECT_FALSE(is_host_readable(managed));
  const DeviceArray here = copy_array(there, Device{});
  EXPECT_NE(data_of(here), data_of(there)) << "the host may not read it while a GPU works";
  EXPECT_EQ(Bytes(data_of(here), data_of(here) + 100), bytes);
}

// ---------------------------------------------------------------- kernels (item 12)

TEST_P(RealMemoryTest, KernelsThatDoNotLoadAreNone) {
  constexpr int kStatuses[] = {200, 218, 221, 222, 223, 209};
  // Modules are loaded once on each device, so this test uses the second one, which others leave.
  for (const int status : kStatuses) {
    fake_->set_module_status(status);
    EXPECT_EQ(find_kernels(second_), nullptr) << status;
  }
  expect_error(ErrorKind::kBuffer, "arrowdl has no kernels for", [&] { require_kernels(second_); });
  fake_->set_module_status(0);
}

// ---------------------------------------------------------------- device to host (item 17)

TEST_P(RealMemoryTest, AWholeBatchComesBackWithOneWait) {
  std::vector<std::string> names;
  std::vector<DeviceArray> columns;
  for (int i = 0; i < 20; ++i) {
    names.push_back(std::to_string(i));
    columns.push_back(make_bytes(Bytes(1000, static_cast<uint8_t>(i))));
  }
  const DeviceArray there = copy_array(make_struct(names, columns), device_);
  there.synchronize();
  settle();
  const int before = fake_->host_waits();
  const DeviceArray here = copy_array(there, Device{});
  EXPECT_EQ(fake_->host_waits() - before, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(read(here.field(i)), Bytes(1000, static_cast<uint8_t>(i)));
}

TEST_P(RealMemoryTest, TheEndsOfListsAreReadTogether) {
  Builder builder(5);
  const OwnedSchema schema = testing::field(
      "+s", testing::field("u"), testing::field("+l", testing::field("i")), testing::field("z"),
      testing::field("+l", testing::field("u")), testing::field("+L", testing::field("g")));
  const Values rows = builder.make_values(parse_schema(*schema.get()), 30);
  const DeviceArray there = copy_array(builder.import(schema, rows), device_);
  there.synchronize();
  settle();
  const int before = fake_->host_waits();
  const DeviceArray here = copy_array(there, Device{});
  EXPECT_EQ(fake_->host_waits() - before, 3) << "lists, the strings in one of them, the copy";
  EXPECT_EQ(read_rows(here), rows);
}

TEST_P(RealMemoryTest, LargeArraysComeBackBlockByBlock) {
  for (const int64_t size : {4 * kMebibyte, 4 * kMebibyte + 1, 13 * kMebibyte + 12345}) {
    const DeviceArray there = copy_array(make_bytes(pattern(size)), device_);
    EXPECT_TRUE(read(there) == pattern(size)) << size;
    const Bytes bytes = pattern(size);
    EXPECT_TRUE(read(there.slice(5, size - 7)) == Bytes(bytes.begin() + 5, bytes.end() - 2));
  }
}

// ---------------------------------------------------------------- pinned arrays (item 18)

TEST_P(RealMemoryTest, PinnedArraysUseTheirMemoryAgain) {
  for (const int64_t size : {int64_t{100}, 5 * kMebibyte}) {
    const DeviceArray array = make_bytes(pattern(size));
    copy_array(array, host_).synchronize();
    settle();
    const int64_t before = fake_->page_locks();
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(read(copy_array(array, host_)) == pattern(size));
      settle();
    }
    EXPECT_EQ(fake_->page_locks(), before) << size;
  }
}

TEST_P(RealMemoryTest, PinnedArraysDoNotCountAgainstTheStagingLimit) {
  set_staging_limit(0);
  std::vector<DeviceArray> held;
  for (int i = 0; i < 5; ++i) held.push_back(copy_array(make_bytes(Bytes(100, 3)), host_));
  for (const DeviceArray& array : held) EXPECT_EQ(read(array), Bytes(100, 3));
  const int before = fake_->count().allocations;
  held.clear();
  EXPECT_TRUE(eventually([&] { return fake_->count().allocations <= before - 5; }));
  set_staging_limit(kDefaultStagingLimit);
}

// ---------------------------------------------------------------- several devices and nodes

/// The mode of this thread's memory policy; -1 where the kernel has none.
int find_policy() {
  int mode = -1;
  return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 ? mode : -1;
}

TEST_P(RealMemoryTest, PinnedMemoryIsOfTheNodeOfItsDevice) {
  if (!is_cuda() || find_policy() != 0) GTEST_SKIP();
  fake_->set_host_node(0);
  const DeviceArray array = copy_array(make_bytes(pattern(21 * kMebibyte)), host_);
  EXPECT_EQ(fake_->pinned_node(), 0);
  EXPECT_EQ(find_policy(), 0);
  fake_->set_host_node(1023);  // none that this machine has
  EXPECT_TRUE(read(copy_array(array, Device{host_.type, 1})) == pattern(21 * kMebibyte));
  constexpr int kBind = 2;
  const unsigned long first_node[16] = {1};
  ASSERT_EQ(syscall(SYS_set_mempolicy, kBind, first_node, 1024), 0);
  fake_->set_host_node(0);
  const DeviceArray other = copy_array(make_bytes(pattern(29 * kMebibyte)), host_);
  EXPECT_EQ(fake_->pinned_node(), -1) << "the user has chosen";
  EXPECT_EQ(find_policy(), kBind);
  ASSERT_EQ(syscall(SYS_set_mempolicy, 0, nullptr, 0), 0);
}

TEST_P(RealMemoryTest, EachDeviceHasPinnedBlocksOfItsOwn) {
  const DeviceArray array = make_bytes(pattern(3 * kMebibyte));
  for (const Device& device : {device_, second_}) {
    int64_t before = fake_->page_locks();
    copy_array(array, device).synchronize();
    settle();
    EXPECT_EQ(fake_->page_locks(), before + 1) << to_string(device);
    before = fake_->page_locks();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(read(copy_array(array, device)) == pattern(3 * kMebibyte));
      settle();
    }
    EXPECT_LE(fake_->page_locks(), before + 1) << to_string(device);
  }
}

TEST_P(RealMemoryTest, TheCallersDeviceStaysCurrentOnEachThread) {
  const DeviceArray array = make_bytes(pattern(6 * kMebibyte));
  const auto use = [&](int current, const Device& to) {
    fake_->set_current_context(current);
    const int64_t before = fake_->current_context();
    const auto check = [&](const char* call) {
      EXPECT_EQ(fake_->current_context(), before) << call << ' ' << to_string(to);
    };
    {
      const DeviceArray there = copy_array(array, to);
      check("to");
      there.synchronize();
      check("synchronize");
      const DeviceArray pinned = copy_array(there, Device{host_.type, to.id});
      check("to pinned memory");
      EXPECT_TRUE(read(there) == pattern(6 * kMebibyte));
      check("to cpu");
      const OwnedStream stream = copy_stream_to(make_stream({array, array}), to);
      while (stream->next()) check("stream");
      there.record_stream(GetParam().default_stream);
    }
    check("release");
  };
  std::vector<std::thread> threads;
  for (const int current : {0, 1}) {
    for (const Device& to : {device_, second_}) threads.emplace_back(use, current, to);
  }
  for (std::thread& thread : threads) thread.join();
  use(1, device_);
  fake_->set_current_context(-1);
  settle();
}

}  // namespace
}  // namespace arrowdl
