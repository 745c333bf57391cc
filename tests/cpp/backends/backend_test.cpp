// Tests the contract of backend.hpp and backends.hpp, on the fake drivers of CUDA and HIP.
#include <memory>
#include <set>

#include "support/device_test.hpp"

namespace arrowdl {
namespace {

using testing::DeviceTest;
using testing::eventually;
using testing::expect_error;

class BackendTest : public DeviceTest {};
INSTANTIATE_DEVICE_TESTS(BackendTest);

using Bytes = std::vector<uint8_t>;

/// A byte of device memory, written by a gated producer and read by a consumer.
TEST_P(BackendTest, TheFakeShowsAMissingWaitAsWrongData) {
  const Gated producer = take_gated_stream();
  const auto memory = make_memory(1);
  fill(producer.stream, memory, 7, 1);
  const StreamHandle consumer = take_stream();
  const auto read = read_on(consumer, memory.get(), 1);
  fake_->drain(0, consumer);
  EXPECT_NE(read->front(), 7);
  fake_->open_gate(producer.gate);
  fake_->drain(0, {});
}

TEST_P(BackendTest, AWaitOrdersTheConsumerAndOutlivesTheEvent) {
  const Gated producer = take_gated_stream();
  const auto memory = make_memory(1);
  fill(producer.stream, memory, 7, 1);
  const EventHandle event = backend_->streams()->record(device_, producer.stream);
  const StreamHandle consumer = take_stream();
  backend_->streams()->wait(device_, consumer, event);
  EXPECT_FALSE(backend_->is_complete(device_, event));
  backend_->streams()->destroy(device_, event);  // pending, and the consumer still waits for it
  const auto read = read_on(consumer, memory.get(), 1);
  fake_->open_gate(producer.gate);
  fake_->drain(0, {});
  EXPECT_EQ(read->front(), 7);
}

TEST_P(BackendTest, SyncEventPointsToTheEvent) {
  const EventHandle event = backend_->streams()->record(device_, take_stream());
  EXPECT_NE(*static_cast<void**>(event.get()), nullptr);
  backend_->streams()->destroy(device_, event);
  backend_->streams()->destroy(device_, {});
}

TEST_P(BackendTest, SynchronizeWaitsOnTheHost) {
  const Gated producer = take_gated_stream();
  const auto memory = make_memory(1);
  fill(producer.stream, memory, 7, 1);
  const EventHandle event = backend_->streams()->record(device_, producer.stream);
  std::thread opener([&] { fake_->open_gate(producer.gate); });
  backend_->synchronize(device_, event);
  EXPECT_EQ(*memory, 7);
  EXPECT_TRUE(backend_->is_complete(device_, event));
  opener.join();
  backend_->streams()->destroy(device_, event);
}

TEST_P(BackendTest, NothingWaitsOnTheHostThatNeedNot) {
  const Gated producer = take_gated_stream();
  const EventHandle event = backend_->streams()->record(device_, producer.stream);
  const StreamHandle consumer = take_stream();
  backend_->streams()->wait(device_, consumer, event);
  const EventHandle joined = backend_->streams()->join(device_, {event, event});
  EXPECT_FALSE(backend_->is_complete(device_, joined));
  void* memory = backend_->memory()->allocate(device_, 16, producer.stream);
  void* other = backend_->memory()->allocate(device_, 16, producer.stream);
  const Device host{GetParam().host, 0};
  void* pinned = backend_->memory()->allocate(host, 16, producer.stream);
  Bytes pageable(16, 3);
  backend_->memory()->copy(device_, memory, Device{}, pageable.data(), 16, producer.stream);
  backend_->memory()->copy(host, pinned, device_, memory, 16, producer.stream);
  backend_->memory()->copy(device_, other, device_, memory, 16, producer.stream);
  backend_->memory()->free(device_, memory, producer.stream);
  backend_->memory()->free(device_, other, producer.stream);
  EXPECT_FALSE(backend_->is_complete(device_, event)) << "all of it while the gate was closed";
  fake_->open_gate(producer.gate);
  backend_->memory()->free(host, pinned, producer.stream);
  backend_->streams()->destroy(device_, joined);
  backend_->streams()->destroy(device_, event);
}

TEST_P(BackendTest, DefaultStreamsAreDLPacksNumbers) {
  const auto memory = make_memory(2);
  for (const StreamHandle stream : {GetParam().default_stream, StreamHandle(uintptr_t{2})}) {
    const int gate = fake_->close_gate();
    fake_->enqueue_gate(0, stream, gate);
    fill(stream, memory, 9, 2);
    const EventHandle event = backend_->streams()->record(device_, stream);
    const StreamHandle consumer = take_stream();
    backend_->streams()->wait(device_, consumer, event);
    backend_->streams()->wait(device_, stream, event);
    EXPECT_FALSE(backend_->is_complete(device_, event));
    const auto read = read_on(consumer, memory.get(), 2);
    fake_->open_gate(gate);
    backend_->synchronize(device_, event);
    fake_->drain(0, {});
    EXPECT_EQ(*read, Bytes(2, 9));
    backend_->streams()->destroy(device_, event);
  }
}

TEST_P(BackendTest, OurStreamsDoNotTakeTurnsWithTheDefaultOne) {
  const int gate = fake_->close_gate();
  fake_->enqueue_gate(0, GetParam().default_stream, gate);
  for (const StreamHandle stream : {take_stream(), backend_->memory()->work_stream(device_)}) {
    const EventHandle event = backend_->streams()->record(device_, stream);
    backend_->synchronize(device_, event);
    backend_->streams()->destroy(device_, event);
  }
  fake_->open_gate(gate);
}

// ---------------------------------------------------------------- streams

TEST_P(BackendTest, ATakenStreamHoldsNoWork) {
  const StreamHandle busy = backend_->memory()->acquire_stream(device_);
  const int gate = fake_->close_gate();
  fake_->enqueue_gate(0, busy, gate);
  backend_->memory()->return_stream(device_, busy);
  const StreamHandle other = take_stream();
  EXPECT_NE(other, busy);
  fake_->open_gate(gate);
  fake_->drain(0, busy);
  const StreamHandle again = take_stream();
  EXPECT_NE(again, other);
}

TEST_P(BackendTest, StreamsAreReusedAndNotKeptWithoutBound) {
  std::vector<StreamHandle> many;
  std::set<void*> distinct;
  for (int i = 0; i < 100; ++i) many.push_back(backend_->memory()->acquire_stream(device_));
  for (const StreamHandle stream : many) distinct.insert(stream.get());
  EXPECT_EQ(distinct.size(), 100U);
  for (const StreamHandle stream : many) backend_->memory()->return_stream(device_, stream);
  EXPECT_LE(fake_->count().streams, before_.streams + 40);
  const int streams = fake_->count().streams;
  for (int i = 0; i < 100; ++i)
    backend_->memory()->return_stream(device_, backend_->memory()->acquire_stream(device_));
  EXPECT_EQ(fake_->count().streams, streams);
}

TEST_P(BackendTest, WorkStreamIsOnePerDevice) {
  const StreamHandle work = backend_->memory()->work_stream(device_);
  EXPECT_EQ(backend_->memory()->work_stream(device_), work);
  EXPECT_NE(backend_->memory()->work_stream(Device{GetParam().device, 1}), work);
  EXPECT_EQ(backend_->memory()->work_stream(Device{GetParam().host, 0}), work);
  EXPECT_NE(take_stream(), work);
}

TEST_P(BackendTest, JoinHappensAfterAllOfThem) {
  const Gated first = take_gated_stream();
  const Gated second = take_gated_stream();
  const EventHandle a = backend_->streams()->record(device_, first.stream);
  const EventHandle b = backend_->streams()->record(device_, second.stream);
  const EventHandle joined = backend_->streams()->join(device_, {a, b});
  fake_->open_gate(second.gate);
  backend_->synchronize(device_, b);
  EXPECT_FALSE(backend_->is_complete(device_, joined));
  fake_->open_gate(first.gate);
  backend_->synchronize(device_, joined);
  EXPECT_TRUE(backend_->is_complete(device_, a));
  EXPECT_FALSE(backend_->streams()->join(device_, {a, b})) << "they have happened";
  for (const EventHandle event : {a, b, joined}) backend_->streams()->destroy(device_, event);
}

// ---------------------------------------------------------------- devices and contexts

TEST_P(BackendTest, TheCallersContextStays) {
  fake_->set_current_context(1);
  const int64_t before = fake_->current_context();
  const EventHandle event = backend_->streams()->record(device_, take_stream());
  backend_->synchronize(device_, event);
  backend_->streams()->destroy(device_, event);
  expect_error(ErrorKind::kRuntime, "",
               [&] { backend_->streams()->record(device_, StreamHandle(uintptr_t{64})); });
  EXPECT_EQ(fake_->current_context(), before);
  fake_->set_current_context(-1);
  EXPECT_EQ(fake_->misuses(), 1) << "the stream that there is not";
  fake_->reset();
}

TEST_P(BackendTest, EveryDeviceHasItsOwnStreamsAndEvents) {
  const Device second{GetParam().device, 1};
  const StreamHandle stream = backend_->memory()->acquire_stream(second);
  const int gate = fake_->close_gate();
  fake_->enqueue_gate(1, stream, gate);
  const EventHandle event = backend_->streams()->record(second, stream);
  const StreamHandle consumer = take_stream();
  backend_->streams()->wait(device_, consumer, event);  // events order streams of other devices too
  const EventHandle after = backend_->streams()->record(device_, consumer);
  EXPECT_FALSE(backend_->is_complete(device_, after));
  fake_->open_gate(gate);
  backend_->synchronize(device_, after);
  backend_->streams()->destroy(device_, after);
  backend_->streams()->destroy(second, event);
  backend_->memory()->return_stream(second, stream);
}

TEST_P(BackendTest, AnIdThatIsNoDevice) {
  for (const int64_t id : {int64_t{-1}, int64_t{2}, int64_t{1} << 40}) {
    expect_error(ErrorKind::kBuffer, "has 2 devices",
                 [&] { backend_->memory()->acquire_stream(Device{GetParam().device, id}); });
  }
  EXPECT_EQ(backend_->device_count(), 2);
}

TEST_P(BackendTest, HostMemoryHasEventsOfItsDevice) {
  const Device host{GetParam().host, 0};
  const Gated producer = take_gated_stream();
  const EventHandle event = backend_->streams()->record(host, producer.stream);
  EXPECT_FALSE(backend_->is_complete(host, event));
  fake_->open_gate(producer.gate);
  backend_->synchronize(host, event);
  backend_->streams()->destroy(host, event);
}

TEST_P(BackendTest, VersionIsForPeople) {
  EXPECT_EQ(backend_->version(), GetParam().has_contexts ? "driver for CUDA 12.4 (libcuda.so.1)"
                                                         : "HIP 6.0.32830 (libamdhip64.so.6)");
}

// ---------------------------------------------------------------- memory

TEST_P(BackendTest, FreedMemoryIsThereUntilTheStreamIsDone) {
  const Gated gated = take_gated_stream();
  auto* memory = static_cast<uint8_t*>(backend_->memory()->allocate(device_, 4, gated.stream));
  fake_->enqueue_fill(0, gated.stream, memory, 5, 4);
  const auto read = read_on(gated.stream, memory, 4);
  backend_->memory()->free(device_, memory, gated.stream);
  fake_->open_gate(gated.gate);
  fake_->drain(0, gated.stream);
  EXPECT_EQ(*read, Bytes(4, 5));
  EXPECT_EQ(*memory, testing::FakeDriver::kPoison);
}

TEST_P(BackendTest, FreeWaitsWhereItHasTo) {
  fake_->set_pools(false);
  std::vector<Device> devices = {Device{GetParam().host, 0}};
  // Each device is queried for pools once, so this test uses another device.
  devices.push_back(Device{GetParam().device, 1});
  if (GetParam().device == kDLCUDA) devices.push_back(Device{kDLCUDAManaged, 0});
  for (const Device& device : devices) {
    const StreamHandle stream = backend_->memory()->acquire_stream(device);
    void* memory = backend_->memory()->allocate(device, 4, stream);
    const int gate = fake_->close_gate();
    const int id = static_cast<int>(device.id);
    fake_->enqueue_gate(id, stream, gate);
    fake_->enqueue_fill(id, stream, memory, 5, 4);
    Bytes read(4);
    fake_->enqueue_copy(id, stream, read.data(), memory, 4);
    std::thread opener([&] { fake_->open_gate(gate); });
    backend_->memory()->free(device, memory, stream);
    EXPECT_EQ(read, Bytes(4, 5)) << to_string(device);
    opener.join();
    backend_->memory()->return_stream(device, stream);
  }
}

TEST_P(BackendTest, AnySizeHasAnAddress) {
  const StreamHandle stream = take_stream();
  for (const int32_t type : {GetParam().device, GetParam().host}) {
    void* memory = backend_->memory()->allocate(Device{type, 0}, 0, stream);
    EXPECT_NE(memory, nullptr);
    backend_->memory()->free(Device{type, 0}, memory, stream);
    backend_->memory()->free(Device{type, 0}, nullptr, stream);
    expect_error(ErrorKind::kMemory, "FAKE_OUT_OF_MEMORY",
                 [&] { backend_->memory()->allocate(Device{type, 0}, int64_t{1} << 50, stream); });
    expect_error(ErrorKind::kValue, "-1 bytes",
                 [&] { backend_->memory()->allocate(Device{type, 0}, -1, stream); });
  }
}

TEST_P(BackendTest, CopiesThereAndBack) {
  const Device second{GetParam().device, 1};
  const StreamHandle stream = take_stream();
  const auto memory = make_memory(4);
  void* far = backend_->memory()->allocate(second, 4, backend_->memory()->work_stream(second));
  const Bytes source{1, 2, 3, 4};
  Bytes target(4);
  backend_->memory()->copy(device_, memory.get(), Device{}, source.data(), 4, stream);
  const EventHandle copied = backend_->streams()->record(device_, stream);
  const StreamHandle other = backend_->memory()->acquire_stream(second);
  backend_->streams()->wait(second, other, copied);
  backend_->memory()->copy(second, far, device_, memory.get(), 4, other);
  backend_->memory()->copy(Device{}, target.data(), second, far, 4, other);
  EXPECT_EQ(target, source) << "pageable memory is there when copy returns, in CUDA as here";
  backend_->memory()->copy(Device{}, nullptr, second, nullptr, 0, other);
  expect_error(ErrorKind::kBuffer, "cannot copy between", [&] {
    backend_->memory()->copy(device_, memory.get(), Device{kDLOneAPI, 0}, far, 4, stream);
  });
  backend_->streams()->destroy(device_, copied);
  backend_->memory()->return_stream(second, other);
  backend_->memory()->free(second, far, backend_->memory()->work_stream(second));
}

TEST_P(BackendTest, AnAddressHasTheDeviceOfItsMemory) {
  std::vector<Device> devices = {device_, Device{GetParam().device, 1}};
  if (GetParam().device == kDLCUDA) {
    devices.push_back(Device{kDLCUDAHost, 0});
    devices.push_back(Device{kDLCUDAManaged, 1});
  }
  for (const Device& device : devices) {
    const StreamHandle stream = backend_->memory()->work_stream(device);
    auto* memory = static_cast<uint8_t*>(backend_->memory()->allocate(device, 8, stream));
    EXPECT_EQ(backend_->find_device(memory), device) << to_string(device);
    EXPECT_EQ(backend_->find_device(memory + 7), device);
    backend_->memory()->free(device, memory, stream);
    expect_error(ErrorKind::kBuffer, "knows no device memory",
                 [&] { backend_->find_device(memory); });
    fake_->drain(static_cast<int>(device.id), stream);
  }
  int own = 0;
  for (const void* address : {static_cast<const void*>(nullptr), static_cast<const void*>(&own)}) {
    expect_error(ErrorKind::kBuffer, "knows no device memory",
                 [&] { backend_->find_device(address); });
  }
  expect_error(ErrorKind::kBuffer, "by the address", [&] { backend_->Backend::find_device(&own); });
}

// ---------------------------------------------------------------- failures and captures

TEST_P(BackendTest, WorkThatFailsIsAnErrorOfWhoeverWaits) {
  const StreamHandle stream = take_stream();
  fake_->enqueue_failure(0, stream);
  const EventHandle event = backend_->streams()->record(device_, stream);
  expect_error(ErrorKind::kRuntime, "FAKE_ILLEGAL_ADDRESS: so says the fake driver",
               [&] { backend_->synchronize(device_, event); });
  expect_error(ErrorKind::kRuntime, "EventQuery failed on",
               [&] { backend_->is_complete(device_, event); });
  backend_->streams()->destroy(device_, event);
}

TEST_P(BackendTest, NothingIsLeftForTheFrameworkToFind) {
  if (GetParam().has_contexts) GTEST_SKIP() << "the driver API keeps no last error";
  void* library = testing::load_library(GetParam().library);
  const auto last_error = reinterpret_cast<int (*)()>(dlsym(library, "hipGetLastError"));
  const Gated gated = take_gated_stream();
  const EventHandle event = backend_->streams()->record(device_, gated.stream);
  EXPECT_FALSE(backend_->is_complete(device_, event));  // hipErrorNotReady
  EXPECT_EQ(last_error(), 0);
  fake_->open_gate(gated.gate);
  backend_->streams()->destroy(device_, event);
}

TEST_P(BackendTest, ACapturedStreamIsRefused) {
  const StreamHandle stream = take_stream();
  const Gated producer = take_gated_stream();
  const OwnedEvent event = OwnedEvent::record(device_, producer.stream);
  fake_->set_capturing(stream, true);
  EXPECT_TRUE(backend_->streams()->is_capturing(device_, stream));
  expect_error(ErrorKind::kBuffer, "captured into a graph",
               [&] { OwnedEvent::record(device_, stream); });
  expect_error(ErrorKind::kBuffer, "captured into a graph",
               [&] { wait_event(device_, stream, event.handle()); });
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_capturing(stream, false);
  fake_->open_gate(producer.gate);
}

TEST_P(BackendTest, AStreamOfOursThatIsCapturedIsNotGivenOutAgain) {
  const StreamHandle drawn_in = backend_->memory()->acquire_stream(device_);
  fake_->set_capturing(drawn_in, true);
  backend_->memory()->return_stream(device_, drawn_in);
  EXPECT_NE(take_stream(), drawn_in);
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_capturing(drawn_in, false);
  bool is_back = false;  // after the streams that are idle already
  for (int i = 0; i < 100 && !is_back; ++i) is_back = take_stream() == drawn_in;
  EXPECT_TRUE(is_back) << "once the capture is over";
}

TEST_P(BackendTest, AnEventIsOfTheDeviceOfItsStream) {
  const Device other{GetParam().device, 1};
  const Device host{GetParam().host, 0};
  const StreamHandle stream = backend_->memory()->acquire_stream(other);
  const int gate = fake_->close_gate();
  fake_->enqueue_gate(1, stream, gate);
  for (const Device& device : {device_, host}) {  // pinned memory is used on every device
    const EventHandle event = backend_->streams()->record(device, stream);
    EXPECT_FALSE(backend_->is_complete(device, event));
    const StreamHandle consumer = take_stream();
    backend_->streams()->wait(device, consumer, event);
    backend_->streams()->destroy(device, event);
  }
  fake_->open_gate(gate);
  fake_->drain(1, stream);
  backend_->memory()->return_stream(other, stream);
}

TEST_P(BackendTest, OthersCapturesAreNotBroken) {
  const StreamHandle stream = take_stream();
  fake_->set_global_capture(true);
  EXPECT_TRUE(backend_->streams()->is_capturing(device_, GetParam().default_stream));
  const OwnedEvent event = OwnedEvent::record(device_, stream);
  EXPECT_TRUE(eventually([&] { return is_complete(device_, event.handle()); }));
  synchronize_event(device_, event.handle());
  backend_->memory()->return_stream(device_, backend_->memory()->acquire_stream(device_));
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_global_capture(false);
}

// ---------------------------------------------------------------- threads

TEST_P(BackendTest, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      const Device device{GetParam().device, thread % 2};
      const int id = static_cast<int>(device.id);
      for (int i = 0; i < 50; ++i) {
        const StreamHandle producer = backend_->memory()->acquire_stream(device);
        const StreamHandle consumer = backend_->memory()->acquire_stream(device);
        void* memory = backend_->memory()->allocate(device, 8, producer);
        fake_->enqueue_fill(id, producer, memory, static_cast<uint8_t>(i), 8);
        const EventHandle event = backend_->streams()->record(device, producer);
        backend_->streams()->wait(device, consumer, event);
        Bytes read(8);
        fake_->enqueue_copy(id, consumer, read.data(), memory, 8);
        backend_->memory()->free(device, memory, consumer);
        const EventHandle done = backend_->streams()->record(device, consumer);
        backend_->synchronize(device, done);
        EXPECT_EQ(read, Bytes(8, static_cast<uint8_t>(i)));
        backend_->streams()->destroy(device, event);
        backend_->streams()->destroy(device, done);
        backend_->memory()->return_stream(device, producer);
        backend_->memory()->return_stream(device, consumer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace arrowdl
