// nanoarrow's ArrowDevice over our backends, driven by nanoarrow's own functions, and what its
// cuda.c of 0.9.0 gets wrong.
#include "arrowdl/arrow_device.hpp"

#include <cerrno>
#include <memory>

#include "arrowdl/owned.hpp"
#include "support/device_test.hpp"

namespace arrowdl {
namespace {

using testing::DeviceTest;

using Bytes = std::vector<uint8_t>;

class ArrowDeviceTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    arrow_ = make_arrow_device(*backend_, device_);
  }

  static OwnedArray make_array_of(std::shared_ptr<const void> owner) {
    ArrayParts parts;
    parts.length = 1;
    parts.buffers = {Buffer(), Buffer(owner, owner.get(), 1)};
    return make_array(std::move(parts));
  }

  static ArrowBufferView view(const Bytes& bytes) {
    ArrowBufferView view;
    view.data.as_uint8 = bytes.data();
    view.size_bytes = static_cast<int64_t>(bytes.size());
    return view;
  }
  static ArrowBufferView view(const ArrowBuffer& buffer) {
    ArrowBufferView view;
    view.data.as_uint8 = buffer.data;
    view.size_bytes = buffer.size_bytes;
    return view;
  }

  OwnedArrowDevice arrow_;
};
INSTANTIATE_DEVICE_TESTS(ArrowDeviceTest);

TEST_P(ArrowDeviceTest, ArraysOwnTheirEvent) {
  const Gated producer = take_gated_stream();
  int released = 0;
  OwnedArray array =
      make_array_of(std::shared_ptr<const void>(&released, [&](const void*) { ++released; }));
  {
    OwnedDeviceArray made;
    ASSERT_EQ(
        ArrowDeviceArrayInitAsync(arrow_.get(), made.get(), array.get(), nullptr, producer.stream),
        NANOARROW_OK);
    EXPECT_EQ(array->release, nullptr);
    EXPECT_EQ(made->device_type, GetParam().device);
    EXPECT_EQ(made->array.length, 1);
    EXPECT_FALSE(backend_->is_complete(device_, made->sync_event));
    OwnedArray inner;
    ArrowArrayMove(&made->array, inner.get());
    OwnedDeviceArray again;
    void* const event = made->sync_event;
    made->sync_event = nullptr;
    ASSERT_EQ(ArrowDeviceArrayInitAsync(arrow_.get(), again.get(), inner.get(),
                                        backend_->join(device_, {event}), producer.stream),
              NANOARROW_OK);
    EXPECT_FALSE(backend_->is_complete(device_, again->sync_event));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  fake_->open_gate(producer.gate);
}

TEST_P(ArrowDeviceTest, OnErrorTheCallerKeepsItsOwn) {
  int released = 0;
  OwnedArray array =
      make_array_of(std::shared_ptr<const void>(&released, [&](const void*) { ++released; }));
  const StreamHandle stream = take_stream();
  void* event = backend_->record(device_, stream);
  OwnedDeviceArray made;
  fake_->fail_call(1, 999);
  EXPECT_EQ(ArrowDeviceArrayInitAsync(arrow_.get(), made.get(), array.get(), event, stream), EIO);
  EXPECT_EQ(released, 0);
  EXPECT_NE(array->release, nullptr);
  backend_->destroy(device_, event);
}

TEST_P(ArrowDeviceTest, SynchronizeDoesWhatItSaysForEveryPair) {
  ArrowError error;
  const auto synchronize = [&](void* event, void* stream) {
    return arrow_->synchronize_event(arrow_.get(), event, stream, &error);
  };
  EXPECT_EQ(synchronize(nullptr, nullptr), NANOARROW_OK);
  for (const bool by_event : {true, false}) {
    const Gated producer = take_gated_stream();
    void* event = backend_->record(device_, producer.stream);
    const StreamHandle consumer = take_stream();
    EXPECT_EQ(synchronize(event, consumer), NANOARROW_OK);
    EXPECT_FALSE(backend_->is_complete(device_, event));
    std::thread opener([&] { fake_->open_gate(producer.gate); });
    // nanoarrow's cuda.c says OK to a stream alone, and does not wait.
    EXPECT_EQ(by_event ? synchronize(event, nullptr) : synchronize(nullptr, consumer),
              NANOARROW_OK);
    EXPECT_TRUE(backend_->is_complete(device_, event));
    opener.join();
    backend_->destroy(device_, event);
  }
  const StreamHandle stream = take_stream();
  fake_->fail_call(1, 999);
  EXPECT_EQ(synchronize(nullptr, stream), EIO);
  EXPECT_NE(std::string(error.message).find("FAKE_ERROR"), std::string::npos) << error.message;
}

TEST_P(ArrowDeviceTest, BuffersThereAndBack) {
  const Bytes source{1, 2, 3};
  for (const StreamHandle stream : {StreamHandle{nullptr}, take_stream()}) {
    nanoarrow::UniqueBuffer there;
    nanoarrow::UniqueBuffer back;
    ASSERT_EQ(ArrowDeviceBufferInitAsync(ArrowDeviceCpu(), view(source), arrow_.get(), there.get(),
                                         stream),
              NANOARROW_OK);
    ASSERT_EQ(ArrowDeviceBufferInitAsync(arrow_.get(), view(*there.get()), ArrowDeviceCpu(),
                                         back.get(), stream),
              NANOARROW_OK);
    if (stream != nullptr) fake_->drain(0, stream);
    EXPECT_EQ(Bytes(back->data, back->data + back->size_bytes), source);
    const Bytes other{9};
    ArrowBufferView first = view(*there.get());
    first.size_bytes = 1;
    EXPECT_EQ(
        ArrowDeviceBufferCopyAsync(ArrowDeviceCpu(), view(other), arrow_.get(), first, stream),
        NANOARROW_OK);
    fake_->drain(0, nullptr);
    EXPECT_EQ(Bytes(there->data, there->data + 3), (Bytes{9, 2, 3}));
    EXPECT_EQ(ArrowDeviceBufferCopyAsync(ArrowDeviceCpu(), view(other), arrow_.get(),
                                         view(*there.get()), stream),
              EINVAL)
        << "one byte is not three";
  }
}

TEST_P(ArrowDeviceTest, ABufferIsGivenBackAfterItsCopyAndInItsContext) {
  const Gated gated = take_gated_stream();
  const Bytes source{1, 2, 3};
  nanoarrow::UniqueBuffer there;
  ASSERT_EQ(ArrowDeviceBufferInitAsync(ArrowDeviceCpu(), view(source), arrow_.get(), there.get(),
                                       gated.stream),
            NANOARROW_OK);
  const uint8_t* const data = there->data;
  fake_->set_current_context(1);
  there.reset();  // in another context, while the copy is pending
  fake_->set_current_context(-1);
  fake_->open_gate(gated.gate);
  fake_->drain(0, nullptr);
  EXPECT_EQ(Bytes(data, data + 3), Bytes(3, testing::FakeDriver::kPoison));
}

TEST_P(ArrowDeviceTest, WhatCannotMoveSaysSo) {
  OwnedArrowDevice second = make_arrow_device(*backend_, Device{GetParam().device, 1});
  int released = 0;
  OwnedArray array =
      make_array_of(std::shared_ptr<const void>(&released, [&](const void*) { ++released; }));
  OwnedDeviceArray source;
  OwnedDeviceArray target;
  ASSERT_EQ(ArrowDeviceArrayInit(arrow_.get(), source.get(), array.get(), nullptr), NANOARROW_OK);
  EXPECT_EQ(arrow_->array_move(arrow_.get(), source.get(), second.get(), target.get()), ENOTSUP);
  EXPECT_NE(source->array.release, nullptr);
  EXPECT_EQ(ArrowDeviceArrayMoveToDevice(source.get(), arrow_.get(), target.get()), NANOARROW_OK);
  nanoarrow::UniqueBuffer buffer;
  nanoarrow::UniqueBuffer moved;
  ASSERT_EQ(ArrowBufferAppend(buffer.get(), "abc", 3), NANOARROW_OK);
  // nanoarrow's cuda.c calls a null pointer here.
  EXPECT_EQ(ArrowDeviceBufferMove(ArrowDeviceCpu(), buffer.get(), arrow_.get(), moved.get()),
            ENOTSUP);
  EXPECT_EQ(ArrowDeviceBufferMove(arrow_.get(), buffer.get(), arrow_.get(), moved.get()),
            NANOARROW_OK);
  EXPECT_EQ(moved->size_bytes, 3);
}

TEST_P(ArrowDeviceTest, ABasicStreamEnds) {
  OwnedSchema schema;
  ASSERT_EQ(ArrowSchemaInitFromType(schema.get(), NANOARROW_TYPE_INT8), NANOARROW_OK);
  OwnedArrayStream host;
  ASSERT_EQ(ArrowBasicArrayStreamInit(host.get(), schema.get(), 1), NANOARROW_OK);
  OwnedArray one = make_array_of(std::make_shared<int8_t>(int8_t{4}));
  ArrowBasicArrayStreamSetArray(host.get(), 0, one.get());
  OwnedDeviceArrayStream stream;
  ASSERT_EQ(ArrowDeviceBasicArrayStreamInit(stream.get(), host.get(), arrow_.get()), NANOARROW_OK);
  int arrays = 0;
  for (; arrays < 3; ++arrays) {
    OwnedDeviceArray next;
    ASSERT_EQ(stream->get_next(stream.get(), next.get()), NANOARROW_OK);
    if (next->array.release == nullptr) break;
  }
  EXPECT_EQ(arrays, 1);
}

/// A copy that has been given to the stream writes to its target, whatever fails afterwards.
TEST_P(ArrowDeviceTest, TheTargetOnTheHostOutlivesAWaitThatFails) {
  nanoarrow::UniqueBuffer there;
  ASSERT_EQ(ArrowDeviceBufferInitAsync(ArrowDeviceCpu(), view(Bytes{1, 2, 3}), arrow_.get(),
                                       there.get(), nullptr),
            NANOARROW_OK);
  const ArrowBufferView source{{there->data}, there->size_bytes};
  int failed = 0;
  for (int n = 1;; ++n) {
    nanoarrow::UniqueBuffer back;
    const testing::FakeCounts before = fake_->count();
    fake_->fail_call(n, 999);
    const int code =
        ArrowDeviceBufferInitAsync(arrow_.get(), source, ArrowDeviceCpu(), back.get(), nullptr);
    const bool has_failed = fake_->has_failed();
    fake_->fail_call(0, 0);
    fake_->drain(0, nullptr);
    EXPECT_TRUE(testing::eventually([] { return pending_releases() == 0; }));
    abandoned_ += fake_->count().events - before.events;
    if (code != NANOARROW_OK) ++failed;
    if (!has_failed) break;
  }
  EXPECT_GE(failed, 5);
}

TEST_P(ArrowDeviceTest, EveryCallFailsInTurn) {
  const Bytes source{1, 2, 3};
  for (int n = 1;; ++n) {
    nanoarrow::UniqueBuffer there;
    const testing::FakeCounts before = fake_->count();
    fake_->fail_call(n, 999);
    const int code = ArrowDeviceBufferInitAsync(ArrowDeviceCpu(), view(source), arrow_.get(),
                                                there.get(), nullptr);
    EXPECT_TRUE(code == NANOARROW_OK || code == EIO) << code;
    const bool has_failed = fake_->has_failed();
    fake_->fail_call(0, 0);
    there.reset();
    const testing::FakeCounts after = fake_->count();
    EXPECT_LE(after.events - before.events, 1);
    EXPECT_LE(after.allocations - before.allocations, 1);
    before_.allocations += after.allocations - before.allocations;
    abandoned_ += after.events - before.events;
    if (!has_failed) break;
  }
}

}  // namespace
}  // namespace arrowdl
