// Tests events and streams of DeviceArrays: an import keeps the producer's event, an export orders
// the consumer after it, and a release waits for the consumer's stream.
#include <memory>

#include "arrowdl/device_array.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_arrow.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/device_test.hpp"

namespace arrowdl {
namespace {

using testing::DeviceTest;
using testing::eventually;
using testing::expect_error;

using Bytes = std::vector<uint8_t>;
constexpr int64_t kRows = 8;

class DeviceArrayEventsTest : public DeviceTest {
 protected:
  /// A tensor of kRows bytes, in `columns` columns, whose memory is overwritten when it is deleted.
  OwnedTensor make_tensor_on(const Device& device, int64_t columns = 1) {
    const StreamHandle stream = backend_->memory()->work_stream(device);
    const std::size_t size = static_cast<std::size_t>(kRows * columns);
    auto* const memory = static_cast<uint8_t*>(
        backend_->memory()->allocate(device, static_cast<int64_t>(size), stream));
    std::shared_ptr<const void> owner(memory, [this, device, stream, memory, size](const void*) {
      std::fill_n(memory, size, testing::FakeDriver::kPoison);
      ++released_;
      backend_->memory()->free(device, memory, stream);
    });
    TensorView view;
    view.data = memory;
    view.device = device;
    view.dtype = find_dtype("uint8");
    view.push_dim(kRows);
    if (columns > 1) view.push_dim(columns);
    view.set_contiguous_strides();
    return make_tensor(view, std::move(owner), 0);
  }

  /// The producer: its stream waits at a gate, and then writes 7s.
  struct Produced {
    DeviceArray array;
    Gated producer;
  };
  Produced produce(const Device& device, int64_t columns = 1) {
    Produced produced{DeviceArray(), take_gated_stream()};
    OwnedTensor tensor = make_tensor_on(device, columns);
    fake_->enqueue_fill(0, produced.producer.stream, tensor->data, 7,
                        static_cast<std::size_t>(kRows * columns));
    OwnedEvent event = OwnedEvent::record(device, produced.producer.stream);
    produced.array = to_arrow(std::move(tensor), {}, std::move(event));
    return produced;
  }

  static ToDlpackOptions ordered(Order order) {
    ToDlpackOptions options;
    options.order = order;
    return options;
  }

  std::atomic<int> released_{0};
};
INSTANTIATE_DEVICE_TESTS(DeviceArrayEventsTest);

TEST_P(DeviceArrayEventsTest, ImportAndExportDoNotWait) {
  for (const int64_t columns : {1, 3}) {  // primitive arrays take a faster path
    Produced produced = produce(device_, columns);
    EXPECT_TRUE(produced.array.sync_event());
    EXPECT_FALSE(produced.array.is_ready());
    const StreamHandle consumer = take_stream();
    OwnedTensor tensor = to_dlpack(produced.array, ordered({Order::kStream, consumer}));
    EXPECT_EQ(tensor->device.device_type, GetParam().device);
    const auto size = static_cast<std::size_t>(kRows * columns);
    const auto read = read_on(consumer, tensor->data, size);
    EXPECT_FALSE(produced.array.is_ready()) << "the gate is closed all the time";
    fake_->open_gate(produced.producer.gate);
    fake_->drain(0, consumer);
    EXPECT_EQ(*read, Bytes(size, 7));
    EXPECT_TRUE(produced.array.is_ready());
    produced.array.synchronize();
  }
}

TEST_P(DeviceArrayEventsTest, ReleaseWaitsForTheConsumersStream) {
  for (const int64_t columns : {1, 3}) {
    released_ = 0;
    Produced produced = produce(device_, columns);
    const StreamHandle consumer = take_stream();
    OwnedTensor tensor = to_dlpack(produced.array, ordered({Order::kStream, consumer}));
    const auto size = static_cast<std::size_t>(kRows * columns);
    const auto read = read_on(consumer, tensor->data, size);
    produced.array = DeviceArray();
    tensor.reset();
    EXPECT_EQ(released_, 0);
    fake_->open_gate(produced.producer.gate);
    EXPECT_TRUE(eventually([&] { return released_ == 1; }));
    EXPECT_EQ(*read, Bytes(size, 7));
  }
}

TEST_P(DeviceArrayEventsTest, AConsumerWithoutAStreamFindsTheData) {
  Produced produced = produce(device_);
  std::thread opener([&] { fake_->open_gate(produced.producer.gate); });
  const OwnedTensor tensor = to_dlpack(produced.array, ordered({}));
  EXPECT_EQ(*static_cast<uint8_t*>(tensor->data), 7);
  opener.join();
}

TEST_P(DeviceArrayEventsTest, AConsumerThatOrdersItselfIsLeftAlone) {
  Produced produced = produce(device_);
  OwnedTensor tensor = to_dlpack(produced.array, ordered({Order::kNone, {}}));
  EXPECT_FALSE(produced.array.is_ready());
  const StreamHandle consumer = take_stream();
  produced.array.record_stream(consumer);
  wait_event(device_, consumer, produced.array.sync_event());
  const auto read = read_on(consumer, tensor->data, 1);
  tensor.reset();
  produced.array = DeviceArray();
  EXPECT_EQ(released_, 0);
  fake_->open_gate(produced.producer.gate);
  EXPECT_TRUE(eventually([&] { return released_ == 1; }));
  EXPECT_EQ(read->front(), 7);
}

TEST_P(DeviceArrayEventsTest, SlicesFieldsAndStructsCarryTheEvent) {
  Produced a = produce(device_);
  Produced b = produce(device_);
  DeviceArray both = make_struct({"a", "b"}, {a.array, b.array});
  EXPECT_EQ(a.array.slice(2, 3).sync_event(), a.array.sync_event());
  EXPECT_FALSE(both.is_ready());
  fake_->open_gate(a.producer.gate);
  a.array.synchronize();
  EXPECT_FALSE(both.is_ready()) << "it is of both";
  EXPECT_EQ(both.field(0).sync_event(), both.sync_event());
  const StreamHandle consumer = take_stream();
  OwnedTensor tensor = to_dlpack(both.field(1).slice(1, 2), ordered({Order::kStream, consumer}));
  const auto read = read_on(consumer, tensor->data, 2);
  a.array = b.array = both = DeviceArray();
  tensor.reset();
  EXPECT_EQ(released_, 0);
  fake_->open_gate(b.producer.gate);
  EXPECT_TRUE(eventually([&] { return released_ == 2; }));
  EXPECT_EQ(*read, Bytes(2, 7));
}

TEST_P(DeviceArrayEventsTest, AnExportedDeviceArrayHasTheEventForAsLongAsItLives) {
  Produced produced = produce(device_);
  const EventHandle event = produced.array.sync_event();
  DeviceArray again =
      DeviceArray::import(produced.array.export_schema(), produced.array.export_device_array());
  produced.array = DeviceArray();
  EXPECT_EQ(again.sync_event(), event);
  EXPECT_EQ(again.device(), device_);
  const StreamHandle consumer = take_stream();
  again.wait(consumer);
  const auto read = read_on(consumer, again.buffer(1), kRows);
  again = DeviceArray();
  EXPECT_EQ(released_, 0);
  fake_->open_gate(produced.producer.gate);
  EXPECT_TRUE(eventually([&] { return released_ == 1; }));
  EXPECT_EQ(*read, Bytes(kRows, 7));
}

TEST_P(DeviceArrayEventsTest, PinnedMemoryIsReadByTheHostAfterItsEvent) {
  const Device host{GetParam().host, 0};
  Produced produced = produce(host);
  std::thread opener([&] { fake_->open_gate(produced.producer.gate); });
  const OwnedArray array = produced.array.export_array();
  EXPECT_EQ(static_cast<const uint8_t*>(array->buffers[1])[kRows - 1], 7);
  opener.join();
  ToDlpackOptions as_cpu;
  as_cpu.as_cpu = true;
  EXPECT_EQ(to_dlpack(produced.array, as_cpu)->device.device_type, kDLCPU);
}

TEST_P(DeviceArrayEventsTest, CpuLabelsWaitWhateverTheOrder) {
  const Device host{GetParam().host, 0};
  Produced produced = produce(host);
  ToDlpackOptions options;
  options.as_cpu = true;
  options.order = {Order::kNone, {}};
  std::thread opener([&] { fake_->open_gate(produced.producer.gate); });
  const OwnedTensor tensor = to_dlpack(produced.array, options);
  EXPECT_EQ(*static_cast<uint8_t*>(tensor->data), 7);
  opener.join();
}

TEST_P(DeviceArrayEventsTest, ACapturedConsumerIsRefusedAndNothingIsLost) {
  Produced produced = produce(device_);
  const StreamHandle consumer = take_stream();
  fake_->set_capturing(consumer, true);
  expect_error(ErrorKind::kBuffer, "captured into a graph",
               [&] { to_dlpack(produced.array, ordered({Order::kStream, consumer})); });
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_capturing(consumer, false);
  fake_->open_gate(produced.producer.gate);
  produced.array.synchronize();  // the producer orders its own work
  produced.array = DeviceArray();
  EXPECT_TRUE(eventually([&] { return released_ == 1; })) << "that stream never got the memory";
}

TEST_P(DeviceArrayEventsTest, ManagedMemoryHasEventsToo) {
  if (GetParam().device != kDLCUDA) GTEST_SKIP() << "DLPack has managed memory for CUDA alone";
  Produced produced = produce(Device{kDLCUDAManaged, 0});
  std::thread opener([&] { fake_->open_gate(produced.producer.gate); });
  EXPECT_EQ(static_cast<const uint8_t*>(produced.array.export_array()->buffers[1])[0], 7);
  opener.join();
}

TEST_P(DeviceArrayEventsTest, EveryCallFailsInTurn) {
  const StreamHandle consumer = take_stream();
  for (int n = 1;; ++n) {
    released_ = 0;
    const testing::FakeCounts before = fake_->count();
    fake_->set_current_context(1);
    const int64_t context = fake_->current_context();
    OwnedTensor tensor = make_tensor_on(device_);
    fake_->fail_call(n, 999);
    try {
      DeviceArray array = to_arrow(std::move(tensor), {}, OwnedEvent::record(device_, consumer));
      to_dlpack(array, ordered({Order::kStream, consumer}));
      to_dlpack(array, ordered({}));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("FAKE_ERROR"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    const bool has_failed = fake_->has_failed();
    fake_->fail_call(0, 0);
    tensor = OwnedTensor();
    EXPECT_EQ(fake_->current_context(), context);
    fake_->set_current_context(-1);
    EXPECT_LE(released_, 1);
    // Memory whose last use cannot be known stays; everything else is released.
    const testing::FakeCounts after = fake_->count();
    EXPECT_LE(after.events - before.events, 2) << "call " << n;
    EXPECT_LE(after.allocations - before.allocations, 1) << "call " << n;
    abandoned_ += after.events - before.events;
    before_.allocations += after.allocations - before.allocations;
    if (!has_failed) {
      EXPECT_EQ(released_, 1);
      EXPECT_GT(n, 20);
      break;
    }
  }
}

TEST_P(DeviceArrayEventsTest, AThousandGatedRounds) {
  for (int round = 0; round < 1000; ++round) {
    Produced produced = produce(device_);
    const StreamHandle consumer = take_stream();
    OwnedTensor tensor = to_dlpack(produced.array, ordered({Order::kStream, consumer}));
    const auto read = read_on(consumer, tensor->data, kRows);
    produced.array = DeviceArray();
    tensor.reset();
    fake_->open_gate(produced.producer.gate);
    fake_->drain(0, consumer);
    ASSERT_EQ(*read, Bytes(kRows, 7)) << "round " << round;
    for (StreamHandle stream : streams_) backend_->memory()->return_stream(device_, stream);
    streams_.clear();
    read_.clear();
  }
  EXPECT_TRUE(eventually([&] { return released_ == 1000; }));
}

}  // namespace
}  // namespace arrowdl
