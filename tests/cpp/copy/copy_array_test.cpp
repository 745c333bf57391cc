// Tests copies of whole arrays between devices, on the fake drivers.
#include <memory>

#include "arrowdl/copy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/build_array.hpp"
#include "support/device_test.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/random_slice.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl {
namespace {

using testing::Builder;
using testing::eventually;
using testing::expect_error;
using testing::read_rows;
using testing::Values;

bool has_views(const Type& type) {
  if (type.layout == Layout::kBinaryView) return true;
  for (const Type& child : type.children) {
    if (has_views(child)) return true;
  }
  return type.dictionary != nullptr && has_views(*type.dictionary);
}

class CopyTest : public testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    objects_ = live_objects();
    host_ = Device{GetParam().host, 0};
    second_ = Device{GetParam().device, 1};
  }
  void TearDown() override {
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    EXPECT_EQ(live_objects(), objects_);
    DeviceTest::TearDown();
  }

  DeviceArray make_bytes(const std::string& bytes) {
    Builder builder(1);
    Values rows;
    for (const char byte : bytes) rows.push_back(testing::number(byte));
    return builder.import(testing::field("c"), rows);
  }

  static const uint8_t* first_byte(const DeviceArray& array) {
    return array.buffer_as<uint8_t>(1) + array.offset();
  }

  Device host_;
  Device second_;
  int64_t objects_ = 0;
};
INSTANTIATE_DEVICE_TESTS(CopyTest);

/// Every type, through all kinds of memory.
TEST_P(CopyTest, EveryTypeComesBack) {
  for (const testing::NamedSchema& named : testing::every_type()) {
    SCOPED_TRACE(named.name);
    const OwnedSchema schema = named.make();
    if (has_views(parse_schema(*schema.get()))) continue;
    for (unsigned seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(seed);
      Builder builder(seed);
      auto [array, expected] = testing::make_slice(builder, schema);
      const DeviceArray copied = copy_array(array, device_);
      array = DeviceArray();
      ASSERT_EQ(copied.device(), device_);
      ASSERT_TRUE(copied.sync_event());
      ASSERT_EQ(read_rows(copy_array(copied, Device{})), expected);
      ASSERT_EQ(read_rows(copy_array(copy_array(copied, second_), Device{})), expected);
      ASSERT_EQ(read_rows(copy_array(copy_array(copied, host_), Device{})), expected);
      const int64_t from = builder.pick(0, copied.length());
      const DeviceArray part = copied.slice(from, copied.length() - from);
      ASSERT_EQ(read_rows(copy_array(part, Device{})),
                Values(expected.begin() + from, expected.end()));
    }
  }
}

TEST_P(CopyTest, ADuplicateIsOnItsDevice) {
  const Values rows = read_rows(make_bytes("abcd"));
  for (const Device& device : {device_, host_}) {
    const DeviceArray source = copy_array(make_bytes("abcd"), device);
    const DeviceArray copied = duplicate(source.slice(1, 2));
    EXPECT_EQ(copied.device(), device);
    EXPECT_NE(copied.buffer(1), source.buffer(1));
    EXPECT_EQ(read_rows(copy_array(copied, Device{})), Values(rows.begin() + 1, rows.begin() + 3));
  }
}

TEST_P(CopyTest, ViewsAreRefused) {
  Builder builder(1);
  const DeviceArray views = builder.import(testing::field("vu"), {testing::text("a")});
  expect_error(ErrorKind::kBuffer, "cast it to string", [&] { copy_array(views, device_); });
}

TEST_P(CopyTest, WhatLiesThereIsNotCopied) {
  const DeviceArray array = make_bytes("abc");
  EXPECT_EQ(copy_array(array, Device{}).buffer(1), array.buffer(1));
  const DeviceArray copied = copy_array(array, device_);
  EXPECT_EQ(copy_array(copied, device_).buffer(1), copied.buffer(1));
  const DeviceArray pinned = copy_array(array, host_);
  const DeviceArray relabelled = copy_array(pinned, Device{});
  EXPECT_EQ(relabelled.buffer(1), pinned.buffer(1)) << "the host can read it";
  EXPECT_EQ(relabelled.device(), Device{});
}

TEST_P(CopyTest, NobodyWaitsAndTheSourceStays) {
  DeviceArray source = copy_array(make_bytes("abcd"), device_);
  source.synchronize();
  const Gated gated = take_gated_stream();
  fake_->enqueue_fill(0, gated.stream, const_cast<uint8_t*>(first_byte(source)), 'z', 4);
  const OwnedEvent written = OwnedEvent::record(device_, gated.stream);
  OwnedDeviceArray exported = source.export_device_array();
  exported->sync_event = written.handle().get();
  DeviceArray pending = DeviceArray::import(source.export_schema(), std::move(exported));
  source = DeviceArray();
  const DeviceArray copied = copy_array(pending, second_);
  EXPECT_FALSE(copied.is_ready()) << "the gate is closed";
  pending = DeviceArray();
  EXPECT_GE(pending_releases(), 1) << "the copy reads it yet";
  fake_->open_gate(gated.gate);
  EXPECT_EQ(read_rows(copy_array(copied, Device{})), read_rows(make_bytes("zzzz")));
}

TEST_P(CopyTest, TheTargetStaysUntilItIsWritten) {
  const Gated gated = take_gated_stream();
  CopyOptions options;
  options.stream = gated.stream;
  copy_array(make_bytes("abcd"), device_, options);  // dropped at once
  EXPECT_GE(pending_releases(), 1);
  fake_->open_gate(gated.gate);
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
}

TEST_P(CopyTest, ACallersStreamRunsTheCopies) {
  const Gated gated = take_gated_stream();
  CopyOptions options;
  options.stream = gated.stream;
  const DeviceArray copied = copy_array(make_bytes("abcd"), device_, options);
  EXPECT_FALSE(copied.is_ready());
  const auto read = read_on(gated.stream, first_byte(copied), 4);  // with no wait of its own
  fake_->open_gate(gated.gate);
  fake_->drain(0, gated.stream);
  EXPECT_EQ(*read, (std::vector<uint8_t>{'a', 'b', 'c', 'd'}));
}

/// The handle of a default stream means another stream on each device.
TEST_P(CopyTest, TheTargetsDefaultStreamComesAfterTheSource) {
  const DeviceArray source = copy_array(make_bytes("abcd"), device_);
  source.synchronize();
  const Gated gated = take_gated_stream();
  const OwnedEvent written = OwnedEvent::record(device_, gated.stream);
  OwnedDeviceArray exported = source.export_device_array();
  exported->sync_event = written.handle().get();
  const DeviceArray pending = DeviceArray::import(source.export_schema(), std::move(exported));
  CopyOptions options;
  options.stream = GetParam().default_stream;
  const DeviceArray copied = copy_array(pending, second_, options);
  EXPECT_FALSE(copied.is_ready());
  fake_->open_gate(gated.gate);
  copied.synchronize();
}

TEST_P(CopyTest, AStreamOfAnotherDeviceIsRefused) {
  CopyOptions options;
  options.stream = take_stream();
  const DeviceArray array = make_bytes("abcd");
  expect_error(ErrorKind::kBuffer, "the stream is not of",
               [&] { copy_array(array, second_, options); });
  EXPECT_EQ(read_rows(copy_array(copy_array(array, host_, options), Device{})), read_rows(array))
      << "pinned memory is of every device";
}

TEST_P(CopyTest, SizesThatOverflowAreRefused) {
  Builder builder(6);
  const DeviceArray array = builder.import(testing::field("Z"), {testing::text("a")});
  const_cast<int64_t*>(array.buffer_as<int64_t>(1))[array.offset()] = 0;
  const_cast<int64_t*>(array.buffer_as<int64_t>(1))[array.offset() + 1] = INT64_MAX;
  expect_error(ErrorKind::kValue, "more bytes than int64 counts",
               [&] { copy_array(array, device_); });
}

TEST_P(CopyTest, BlockingCopiesAreDone) {
  CopyOptions options;
  options.non_blocking = false;
  EXPECT_TRUE(copy_array(make_bytes("abcd"), device_, options).is_ready());
}

TEST_P(CopyTest, ACapturedStreamIsRefused) {
  CopyOptions options;
  options.stream = take_stream();
  fake_->set_capturing(*options.stream, true);
  const DeviceArray array = make_bytes("abcd");
  expect_error(ErrorKind::kBuffer, "captured into a graph",
               [&] { copy_array(array, device_, options); });
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_capturing(*options.stream, false);
}

TEST_P(CopyTest, NullsAreKnownWhereTheHostCannotCountThem) {
  Builder builder(3);
  const DeviceArray array = builder.import(
      testing::field("i"), {testing::number(1), testing::null(), testing::number(2)});
  const DeviceArray copied = copy_array(array.slice(1, 2), device_);
  EXPECT_EQ(copied.null_count(), 1);
  EXPECT_EQ(copy_array(array.slice(2, 1), device_).validity(), nullptr) << "nothing to copy";
}

TEST_P(CopyTest, OffsetsBeyondTheValuesAreRefused) {
  Builder builder(4);
  const OwnedSchema schema = testing::field("+l", testing::field("i"));
  const Type type = parse_schema(*schema.get());
  const DeviceArray array = builder.import(schema, builder.make_values(type, 5));
  const_cast<int32_t*>(array.buffer_as<int32_t>(1))[array.offset() + 5] = 1 << 20;
  expect_error(ErrorKind::kValue, "beyond its values", [&] { copy_array(array, device_); });
}

TEST_P(CopyTest, ATensorIsCopiedIntoMemoryOfAnother) {
  const Gated gated = take_gated_stream();
  const auto memory = make_memory(4, gated.stream);
  OwnedTensor source = to_dlpack(copy_array(make_bytes("abcd"), Device{}));
  TensorView view = view_tensor(*source);
  view.data = memory.get();
  view.device = device_;
  const OwnedTensor target = make_tensor(view, memory, 0);
  copy_tensor(std::move(source), *target, gated.stream);
  const auto read = read_on(gated.stream, memory.get(), 4);
  EXPECT_GE(pending_releases(), 1);
  fake_->open_gate(gated.gate);
  fake_->drain(0, gated.stream);
  EXPECT_EQ(*read, (std::vector<uint8_t>{'a', 'b', 'c', 'd'}));
}

/// Each call of the driver fails in turn. The copy raises a clear error, and everything is released
/// but memory whose last use cannot be known.
TEST_P(CopyTest, EveryCallMayFail) {
  Builder builder(5);
  const OwnedSchema schema = testing::field("+l", testing::field("u"));
  const Type type = parse_schema(*schema.get());
  const Values rows = builder.make_values(type, 6);
  const DeviceArray array = builder.import(schema, rows);
  constexpr int kUnknownFailure = 999;
  const int64_t abandoned_before = abandoned_releases();
  int failed = 0;
  for (int n = 1;; ++n) {
    SCOPED_TRACE(n);
    const int64_t objects = live_objects();
    const int64_t abandoned = abandoned_releases();
    fake_->fail_call(n, kUnknownFailure);
    try {
      const DeviceArray back = copy_array(copy_array(array, device_), Device{});
      fake_->drain(0, {});
      if (!fake_->has_failed()) break;
      ASSERT_EQ(read_rows(back), rows);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("fail"), std::string::npos) << error.what();
      ++failed;
    }
    fake_->fail_call(0, 0);
    ASSERT_TRUE(eventually([] { return pending_releases() == 0; }));
    if (abandoned_releases() == abandoned) {
      EXPECT_EQ(live_objects(), objects);
    }
  }
  fake_->fail_call(0, 0);
  EXPECT_GE(failed, 20);
  EXPECT_EQ(abandoned_releases(), abandoned_before) << "each error passes";
  accept_abandoned();  // events whose device could not be entered
}

}  // namespace
}  // namespace arrowdl
