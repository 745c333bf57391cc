// Tests what real drivers do with streams: consumers that name none, default streams of several
// devices, captures, green contexts, and errors that pass.
#include <future>
#include <memory>

#include "arrowdl/device_array.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"
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
constexpr std::size_t kFilledRows = 8;

class RealStreamsTest : public DeviceTest {
 protected:
  /// An array of 7s whose memory is overwritten at once when it is released.
  DeviceArray make_array(const Device& device) {
    const auto memory = make_memory(kFilledRows);
    fill(backend_->memory()->work_stream(device_), memory, 7, kFilledRows);
    OwnedEvent event = OwnedEvent::record(device_, backend_->memory()->work_stream(device_));
    fake_->drain(0, backend_->memory()->work_stream(device_));
    TensorView view;
    view.data = memory.get();
    view.device = device;
    view.dtype = find_dtype("uint8");
    view.push_dim(kFilledRows);
    view.set_contiguous_strides();
    std::shared_ptr<const void> owner(memory.get(), [this, memory](const void*) {
      std::fill_n(memory.get(), kFilledRows, testing::FakeDriver::kPoison);
      ++released_;
    });
    return to_arrow(make_tensor(view, std::move(owner), 0), {}, std::move(event));
  }

  /// Closes a gate on a stream of a device.
  int gate(int device, StreamHandle stream) {
    const int closed = fake_->close_gate();
    fake_->enqueue_gate(device, stream, closed);
    return closed;
  }

  std::shared_ptr<Bytes> read_on_device(int device, StreamHandle stream, const void* memory) {
    auto target = std::make_shared<Bytes>(kFilledRows);
    read_.push_back(target);
    fake_->enqueue_copy(device, stream, target->data(), memory, kFilledRows);
    return target;
  }

  /// Returns when the release thread has seen all earlier releases that wait for `stream`.
  void pass_releases(StreamHandle stream) {
    std::atomic<bool> is_dropped{false};
    release_after(device_, stream,
                  {&is_dropped, [&is_dropped](const void*) { is_dropped = true; }});
    EXPECT_TRUE(eventually([&] { return is_dropped.load(); }));
  }

  std::atomic<int> released_{0};
};
INSTANTIATE_DEVICE_TESTS(RealStreamsTest);

// libcudf's from_arrow_device makes its stream wait for sync_event, and its owner calls release
// when its kernels may still run. Its stream is the legacy default one, or the per-thread one,
// which the legacy one waits for.
TEST_P(RealStreamsTest, AConsumerOfTheDeviceInterfaceNamesNoStream) {
  const StreamHandle default_stream = GetParam().default_stream;
  for (const bool by_stream : {false, true}) {
    released_ = 0;
    DeviceArray array = make_array(device_);
    OwnedDeviceArray exported;
    if (by_stream) {
      OwnedDeviceArrayStream stream = export_device_stream(make_stream({std::move(array)}));
      ASSERT_EQ(stream->get_next(stream.get(), exported.get()), 0);
    } else {
      exported = array.export_device_array();
    }
    const int closed = gate(0, default_stream);
    wait_event(device_, default_stream, EventHandle(exported->sync_event));
    const auto read = read_on(default_stream, exported->array.buffers[1], kFilledRows);
    array = DeviceArray();
    exported.reset();
    EXPECT_EQ(released_, 0) << "its kernels have not run";
    fake_->open_gate(closed);
    EXPECT_TRUE(eventually([&] { return released_ == 1; }));
    EXPECT_EQ(*read, Bytes(kFilledRows, 7));
  }
}

TEST_P(RealStreamsTest, TheDefaultStreamOfAnotherDeviceIsOrderedThere) {
  const StreamHandle stream = GetParam().default_stream;
  const Device other{GetParam().device, 1};
  DeviceArray array = make_array(device_);
  array.wait(stream);
  array.wait(other, stream);
  array.record_stream(other, stream);
  const int closed = gate(1, stream);
  const auto read = read_on_device(1, stream, array.buffer(1));
  array = DeviceArray();
  pass_releases(stream);
  EXPECT_EQ(released_, 0) << "the other device reads it";
  fake_->open_gate(closed);
  EXPECT_TRUE(eventually([&] { return released_ == 1; }));
  EXPECT_EQ(*read, Bytes(kFilledRows, 7));
}

TEST_P(RealStreamsTest, TheWaitIsOnTheOtherDevice) {
  const StreamHandle stream = GetParam().default_stream;
  const auto source = std::make_shared<Bytes>(kFilledRows, uint8_t{7});
  const Gated producer = take_gated_stream();
  const OwnedEvent event = OwnedEvent::record(device_, producer.stream);
  wait_event(Device{GetParam().device, 1}, stream, event.handle());
  const auto there = read_on_device(1, stream, source->data());
  const auto here = read_on_device(0, stream, source->data());
  const OwnedEvent copied = OwnedEvent::record(device_, stream);
  EXPECT_TRUE(eventually([&] { return is_complete(device_, copied.handle()); }));
  EXPECT_EQ(*here, Bytes(kFilledRows, 7));
  EXPECT_EQ(*there, Bytes(kFilledRows, 0)) << "the producer's gate is closed";
  fake_->open_gate(producer.gate);
  fake_->drain(1, stream);
  EXPECT_EQ(*there, Bytes(kFilledRows, 7));
}

// cuStreamWaitEvent cannot wait for work outside of a graph; nothing has to wait for an event that
// has completed.
TEST_P(RealStreamsTest, ACaptureTakesAnArrayThatIsReady) {
  DeviceArray array = make_array(device_);
  const StreamHandle captured = take_stream();
  fake_->set_capturing(captured, true);
  ToDlpackOptions options;
  options.order = {Order::kStream, captured};
  OwnedTensor tensor = to_dlpack(array, options);
  EXPECT_FALSE(fake_->is_capture_broken());
  array = DeviceArray();
  tensor.reset();
  EXPECT_EQ(released_, 0);
  fake_->set_capturing(captured, false);
  EXPECT_TRUE(eventually([&] { return released_ == 1; }));
}

TEST_P(RealStreamsTest, TheDefaultStreamTakesAnArrayThatIsReadyDuringACapture) {
  DeviceArray array = make_array(device_);
  fake_->set_global_capture(true);
  array.wait(GetParam().default_stream);
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_global_capture(false);
}

// A thread in the global mode may not call cudaFree while another one captures (the documentation
// of cuThreadExchangeStreamCaptureMode): the capture would be invalidated.
TEST_P(RealStreamsTest, AForeignReleaseBreaksNoCapture) {
  const Gated consumer = take_gated_stream();
  void* const library = testing::load_library(GetParam().library);
  const char* const name = GetParam().has_contexts ? "cuMemFree_v2" : "hipFree";
  auto* const free = reinterpret_cast<int (*)(void*)>(dlsym(library, name));
  void* foreign = nullptr;
  {
    fake_->set_pools(false);
    foreign = backend_->memory()->allocate(device_, 8, consumer.stream);
    fake_->set_pools(true);
  }
  std::promise<int> status;
  std::shared_ptr<const void> owner(foreign, [&](const void* memory) {
    fake_->set_current_context(0);
    status.set_value(free(const_cast<void*>(memory)));
    fake_->set_current_context(-1);
  });
  release_after(device_, consumer.stream, std::move(owner));
  fake_->set_global_capture(true);
  fake_->open_gate(consumer.gate);
  EXPECT_EQ(status.get_future().get(), 0);
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_global_capture(false);
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
}

TEST_P(RealStreamsTest, ADeleterNeverWaits) {
  set_release_limit(0);
  const Gated consumer = take_gated_stream();
  for (int i = 0; i < 3; ++i) {
    DeviceArray array = make_array(device_);
    ToDlpackOptions options;
    options.order = {Order::kStream, consumer.stream};
    OwnedTensor tensor = to_dlpack(array, options);
    array = DeviceArray();
    tensor.reset();  // would wait for the gate, which this thread opens
  }
  EXPECT_EQ(pending_releases(), 3);
  fake_->open_gate(consumer.gate);
  EXPECT_TRUE(eventually([&] { return released_ == 3; }));
}

// Not sticky: the driver was out of memory for an event, and is not any more.
TEST_P(RealStreamsTest, AnErrorThatPassesLeaksNothing) {
  const StreamHandle stream = take_stream();
  const int64_t abandoned = abandoned_releases();
  constexpr int kFailedCalls = 12;
  for (int call = 1; call <= kFailedCalls; ++call) {
    released_ = 0;
    DeviceArray array = make_array(device_);
    array.record_stream(stream);
    fake_->fail_call(call, 2);
    array = DeviceArray();
    EXPECT_TRUE(eventually([&] { return released_ == 1; })) << "call " << call;
    fake_->fail_call(0, 0);
  }
  EXPECT_EQ(abandoned_releases(), abandoned);
}

class GreenContextsTest : public RealStreamsTest {};
INSTANTIATE_TEST_SUITE_P(Fake, GreenContextsTest, ::testing::Values(testing::kCuda),
                         testing::runtime_name);

// cuStreamGetCtx gives the stream's green context, cuStreamGetCtx_v2 the primary one of its device.
TEST_P(GreenContextsTest, ItsStreamsAreOfTheDevice) {
  const StreamHandle green = take_stream();
  fake_->drain(0, green);
  fake_->set_green(green, true);
  backend_->memory()->require_stream_of(device_, green);
  expect_error(ErrorKind::kBuffer, "not of cuda:1",
               [&] { backend_->memory()->require_stream_of(Device{kDLCUDA, 1}, green); });
  DeviceArray array = make_array(device_);
  ToDlpackOptions options;
  options.order = {Order::kStream, green};
  OwnedTensor tensor = to_dlpack(array, options);
  const int closed = gate(0, green);
  const auto read = read_on(green, tensor->data, kFilledRows);
  array = DeviceArray();
  tensor.reset();
  EXPECT_EQ(released_, 0);
  fake_->open_gate(closed);
  EXPECT_TRUE(eventually([&] { return released_ == 1; }));
  EXPECT_EQ(*read, Bytes(kFilledRows, 7));
  fake_->set_green(green, false);
}

}  // namespace
}  // namespace arrowdl
