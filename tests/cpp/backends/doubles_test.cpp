// Tests that the fake drivers count what a real driver may not notice: work on memory that is
// freed, or beyond its end.
#include <gtest/gtest.h>

#include "arrowdl/backend.hpp"
#include "support/device_test.hpp"

namespace arrowdl::testing {
namespace {

class DoublesTest : public DeviceTest {
 protected:
  void TearDown() override {
    fake_->reset();  // the misuses are this test's own
    DeviceTest::TearDown();
  }
  uint8_t* allocate(StreamHandle stream) {
    return static_cast<uint8_t*>(memory().allocate(device_, kSize, stream));
  }
  MemoryOps& memory() { return *backend_->memory(); }
  void copy(uint8_t* target, const uint8_t* source, int64_t size, StreamHandle stream) {
    memory().copy(device_, target, device_, source, size, stream);
  }

  static constexpr int64_t kSize = 64;
};
INSTANTIATE_DEVICE_TESTS(DoublesTest);

TEST_P(DoublesTest, WorkOnFreedMemoryIsAMisuse) {
  const StreamHandle stream = take_stream();
  uint8_t* const freed = allocate(stream);
  uint8_t* const kept = allocate(stream);
  copy(kept, freed, kSize, stream);
  memory().free(device_, freed, stream);
  fake_->drain(0, stream);
  EXPECT_EQ(fake_->misuses(), 0);
  EXPECT_ANY_THROW(copy(kept, freed, kSize, stream));
  EXPECT_EQ(fake_->misuses(), 1);
  EXPECT_ANY_THROW(copy(freed, kept, kSize, stream));
  EXPECT_EQ(fake_->misuses(), 2);
  if (KernelOps* const kernels = backend_->kernels(device_)) {
    kernels->unpack_bits(device_, kept, kSize, {freed, 0}, stream);
    EXPECT_GE(fake_->misuses(), 3);
    fake_->drain(0, stream);
  }
  memory().free(device_, kept, stream);
}

TEST_P(DoublesTest, WorkThatRunsAfterTheMemoryIsFreedIsAMisuse) {
  const Gated reader = take_gated_stream();
  const StreamHandle owner = take_stream();
  uint8_t* const bytes = allocate(owner);
  read_on(reader.stream, bytes, kSize);
  memory().free(device_, bytes, owner);
  fake_->drain(0, owner);
  EXPECT_EQ(fake_->misuses(), 0);
  fake_->open_gate(reader.gate);
  fake_->drain(0, reader.stream);
  EXPECT_EQ(fake_->misuses(), 1);
}

TEST_P(DoublesTest, WorkBeyondAnAllocationIsAMisuse) {
  const StreamHandle stream = take_stream();
  uint8_t* const a = allocate(stream);
  uint8_t* const b = allocate(stream);
  EXPECT_ANY_THROW(copy(a, b + 1, kSize, stream));
  EXPECT_EQ(fake_->misuses(), 1);
  EXPECT_ANY_THROW(copy(a + 1, b, kSize, stream));
  EXPECT_EQ(fake_->misuses(), 2);
  memory().free(device_, a, stream);
  memory().free(device_, b, stream);
}

TEST_P(DoublesTest, KernelsDoNotReachPageableMemoryNorAnotherDevice) {
  KernelOps* const kernels = backend_->kernels(device_);
  if (kernels == nullptr) return;
  const StreamHandle stream = take_stream();
  uint8_t* const target = allocate(stream);
  const uint8_t bits[kSize] = {};
  kernels->unpack_bits(device_, target, kSize, {bits, 0}, stream);
  EXPECT_EQ(fake_->misuses(), 1);
  void* const elsewhere = fake_->allocate_elsewhere(1, kSize);
  kernels->unpack_bits(device_, target, kSize, {static_cast<uint8_t*>(elsewhere), 0}, stream);
  EXPECT_EQ(fake_->misuses(), 2);
  fake_->drain(0, stream);
  fake_->free_elsewhere(elsewhere);
  memory().free(device_, target, stream);
}

}  // namespace
}  // namespace arrowdl::testing
