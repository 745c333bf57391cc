// Tests bits and nulls on the streams of the fake drivers. The fake driver compiles CUDA's
// kernels for the CPU; ROCm has none here.
#include <cstring>
#include <functional>
#include <memory>

#include "arrowdl/concatenate.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/list_tensors.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "compute/plain_rows.hpp"
#include "support/build_array.hpp"
#include "support/device_test.hpp"
#include "support/every_type.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl {
namespace {

using testing::Builder;
using testing::eventually;
using testing::expect_error;
using testing::Values;

using Bytes = std::vector<uint8_t>;
using Read = std::function<OwnedTensor(const DeviceArray& array, const Order& order)>;

OwnedTensor read_values(const DeviceArray& array, Nulls nulls, const Order& order) {
  ToDlpackOptions options;
  options.nulls = nulls;
  options.order = order;
  return to_dlpack(array, options);
}

const Read kReadings[] = {
    [](const auto& array, const Order& order) { return read_values(array, Nulls::kFill, order); },
    [](const auto& array, const Order& order) { return read_values(array, Nulls::kNan, order); },
    [](const auto& array, const Order& order) { return read_values(array, Nulls::kKeep, order); },
    [](const auto& array, const Order& order) { return to_mask(array, order); },
    [](const auto& array, const Order& order) { return to_row_mask(array, order); },
};

/// A tensor, or the error of its conversion.
struct Answer {
  OwnedTensor tensor;
  std::string error;
};

Answer try_read(const Read& read, const DeviceArray& array, const Order& order) {
  try {
    return {read(array, order), {}};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

std::vector<int64_t> dims_of(const OwnedTensor& tensor) {
  std::vector<int64_t> dims(tensor->shape, tensor->shape + tensor->ndim);
  dims.insert(dims.end(), tensor->strides, tensor->strides + tensor->ndim);
  dims.insert(dims.end(), {tensor->dtype.code, tensor->dtype.bits, tensor->ndim});
  return dims;
}

Bytes bytes_of(const OwnedTensor& tensor) {
  const TensorView view = view_tensor(*tensor);
  return view.size() == 0 ? Bytes() : Bytes(view.data, view.data + view.nbytes());
}

bool get(const Bytes& bits, int64_t i) {
  return (bits[static_cast<std::size_t>(i / 8)] >> (i % 8) & 1) != 0;
}

/// The offsets of lists, padded rows, and lists of several arrays.
const Read kListReadings[] = {
    [](const auto& array, const Order& order) {
      return read_values(split_list(array, true).offsets, Nulls::kRaise, order);
    },
    [](const auto& array, const Order& order) {
      return pad_list(split_list(array, true), Nulls::kFill, {}, order);
    },
    [](const auto& array, const Order& order) {
      const DeviceArray joined = concatenate({array.slice(1, array.length() - 1), array});
      return list_lengths(split_list(joined), -1, order);
    },
};

/// Field 0 of a struct.
const Read kFieldReadings[] = {
    [](const auto& array, const Order& order) {
      return read_values(read_field(array, 0), Nulls::kFill, order);
    },
    [](const auto& array, const Order& order) { return to_mask(read_field(array, 0), order); },
    [](const auto& array, const Order& order) { return to_row_mask(array.field(0), order); },
    [](const auto& array, const Order& order) { return stack_fields(array, Nulls::kFill, order); },
};

class KernelsTest : public testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    objects_ = live_objects();
  }
  void TearDown() override {
    events_.clear();
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    EXPECT_EQ(live_objects(), objects_);
    DeviceTest::TearDown();
  }

  Order order_of(StreamHandle stream) const { return {Order::kStream, stream}; }

  /// A copy on the device whose nulls are not counted.
  DeviceArray upload(const DeviceArray& array) {
    const DeviceArray copied = copy_array(array, device_);
    copied.synchronize();
    // The source of the copy is released a moment later, and tests count pending releases.
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    OwnedDeviceArray exported = copied.export_device_array();
    exported->sync_event = nullptr;
    if (copied.validity() != nullptr) exported->array.null_count = -1;
    return DeviceArray::import(copied.export_schema(), std::move(exported));
  }

  /// A struct of one field with `rows`. One struct in three is null.
  DeviceArray make_structs(Builder& builder, const char* format, const Values& rows) {
    Values structs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      structs.push_back(i % 3 == 1 ? testing::null() : testing::items({rows[i]}));
    }
    return builder.import(testing::field("+s", testing::field(format)), structs);
  }

  DeviceArray make_rows(const char* format, const Values& rows) {
    Builder builder(1);
    return builder.import(testing::field(format), rows);
  }

  /// `array`, whose bytes are ready after `gate` is opened.
  DeviceArray hold_back(const DeviceArray& array, const Gated& gated) {
    fake_->enqueue_fill(0, gated.stream, const_cast<uint8_t*>(array.validity()), 0x05, 1);
    events_.push_back(OwnedEvent::record(device_, gated.stream));
    OwnedDeviceArray exported = array.export_device_array();
    exported->sync_event = events_.back().handle().get();
    return DeviceArray::import(array.export_schema(), std::move(exported));
  }

  /// Fails the driver's call `n` during `work`. Returns whether it makes that call. Everything is
  /// released but memory whose last use cannot be known.
  template <typename Work>
  bool fail_call(int n, const Work& work) {
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    const int64_t objects = live_objects();
    const int64_t abandoned = abandoned_releases();
    fake_->fail_call(n, 999);
    work();
    const bool has_failed = fake_->has_failed();
    fake_->fail_call(0, 0);
    fake_->drain(0, {});
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    if (abandoned_releases() == abandoned) {
      EXPECT_EQ(live_objects(), objects) << "call " << n;
    }
    return has_failed;
  }

  bool fail_reading(const DeviceArray& array, const Read& read, StreamHandle stream, int n) {
    return fail_call(n, [&] { try_read(read, array, order_of(stream)); });
  }

  std::vector<OwnedEvent> events_;
  int64_t objects_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Fake, KernelsTest, ::testing::Values(testing::kCuda),
                         testing::runtime_name);

class WithoutKernelsTest : public KernelsTest {};
INSTANTIATE_TEST_SUITE_P(Fake, WithoutKernelsTest, ::testing::Values(testing::kHip),
                         testing::runtime_name);

class CopyOnDeviceTest : public KernelsTest {};
INSTANTIATE_DEVICE_TESTS(CopyOnDeviceTest);

TEST_P(KernelsTest, EveryTypeReadsAsOnTheHost) {
  std::vector<testing::NamedSchema> types = testing::every_type();
  types.push_back({"float16", [] { return testing::field("e"); }});
  types.push_back({"float64", [] { return testing::field("g"); }});
  types.push_back({"lists_of_lists", [] {
                     return testing::field("+w:2", testing::field("+w:3", testing::field("s")));
                   }});
  const StreamHandle stream = take_stream();
  for (const testing::NamedSchema& named : types) {
    SCOPED_TRACE(named.name);
    const OwnedSchema schema = named.make();
    const Type type = parse_schema(*schema.get());
    const bool is_of_views = type.dictionary != nullptr;  // they cannot be copied to the device
    if (is_of_views || !why_not_tensor(type).empty()) continue;
    for (unsigned seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(seed);
      Builder builder(seed);
      const Values rows = builder.make_values(type, builder.pick(0, seed == 0 ? 900 : 30));
      const auto count = static_cast<int64_t>(rows.size());
      const int64_t start = builder.pick(0, count);
      const DeviceArray array =
          builder.import(schema, rows).slice(start, builder.pick(0, count - start));
      const DeviceArray there = copy_array(array, device_);
      for (const Read& read : kReadings) {
        const Answer expected = try_read(read, array, {});
        const Answer answer = try_read(read, there, order_of(stream));
        fake_->drain(0, stream);
        if (answer.error.find("needs a floating point type") != std::string::npos) continue;
        ASSERT_EQ(answer.error, expected.error);  // except for nan with uncounted nulls
        if (!answer.tensor) continue;
        ASSERT_EQ(dims_of(answer.tensor), dims_of(expected.tensor));
        ASSERT_EQ(bytes_of(answer.tensor), bytes_of(expected.tensor));
      }
    }
  }
}

TEST_P(KernelsTest, KernelsAgreeWithANaiveWalk) {
  const StreamHandle stream = take_stream();
  Builder builder(7);
  for (int round = 0; round < 60; ++round) {
    const int64_t size = builder.pick(1, round % 10 == 0 ? 70000 : 400);
    const int64_t repeat = builder.pick(1, 5);
    const int64_t offset = builder.pick(0, 20);
    const int64_t width = int64_t{1} << builder.pick(0, 4);
    Bytes bits(static_cast<std::size_t>((offset + size / repeat + 8) / 8));
    for (uint8_t& byte : bits) byte = static_cast<uint8_t>(builder.pick(0, 255));
    const auto held = make_memory(static_cast<int64_t>(bits.size()), stream);
    backend_->memory()->copy(device_, held.get(), Device{}, bits.data(),
                             static_cast<int64_t>(bits.size()), stream);
    const auto target = make_memory(size * width, stream);
    const Bitmap bitmap{held.get(), offset, repeat};
    const Bytes item{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    // In place, or from memory that is not aligned to more than an element.
    const auto elsewhere = make_memory(size * width + 16, stream);
    uint8_t* const source =
        round % 2 == 0 ? target.get() : elsewhere.get() + builder.pick(0, 16 / width) * width;
    fake_->enqueue_fill(0, stream, source, 0xEE, static_cast<std::size_t>(size * width));
    backend_->kernels(device_)->copy_set(device_, target.get(), size, source, bitmap, item.data(),
                                         width, stream);
    const auto filled = read_on(stream, target.get(), static_cast<std::size_t>(size * width));
    backend_->kernels(device_)->unpack_bits(device_, target.get(), size, bitmap, stream);
    const auto expanded = read_on(stream, target.get(), static_cast<std::size_t>(size));
    backend_->kernels(device_)->unpack_bits(device_, target.get(), size, Bitmap{}, stream);
    const auto all = read_on(stream, target.get(), static_cast<std::size_t>(size));
    fake_->drain(0, stream);
    Bytes expected_items;
    Bytes expected_bytes;
    for (int64_t i = 0; i < size; ++i) {
      const bool is_set = get(bits, offset + i / repeat);
      expected_bytes.push_back(is_set ? 1 : 0);
      for (std::size_t b = 0; b < static_cast<std::size_t>(width); ++b) {
        expected_items.push_back(is_set ? uint8_t{0xEE} : item[b]);
      }
    }
    ASSERT_EQ(*filled, expected_items) << round;
    ASSERT_EQ(*expanded, expected_bytes) << round;
    ASSERT_EQ(*all, Bytes(static_cast<std::size_t>(size), 1));
  }
}

TEST_P(KernelsTest, BitmapsAreJoinedAsByANaiveWalk) {
  const StreamHandle stream = take_stream();
  Builder builder(8);
  for (int round = 0; round < 60; ++round) {
    const int64_t count = builder.pick(1, round % 10 == 0 ? 70000 : 40);
    const int64_t shift = builder.pick(0, 7);
    const int64_t offsets[] = {builder.pick(0, 20), builder.pick(0, 20)};
    const int64_t repeat = builder.pick(1, 2);
    Bytes held[2];
    Bitmap bitmaps[2];
    std::shared_ptr<uint8_t> memory[2];
    for (std::size_t i = 0; i < 2; ++i) {
      held[i].resize(static_cast<std::size_t>((offsets[i] + (count - 1) / repeat + 8) / 8));
      for (uint8_t& byte : held[i]) byte = static_cast<uint8_t>(builder.pick(0, 255));
      const auto size = static_cast<int64_t>(held[i].size());
      memory[i] = make_memory(size, stream);
      backend_->memory()->copy(device_, memory[i].get(), Device{}, held[i].data(), size, stream);
      const bool is_absent = builder.pick(0, 4) == 0;
      bitmaps[i] = {is_absent ? nullptr : memory[i].get(), offsets[i], repeat};
    }
    Bytes expected(static_cast<std::size_t>((shift + count + 7) / 8));
    for (int64_t i = 0; i < count; ++i) {
      bool is_set = true;
      for (std::size_t k = 0; k < 2; ++k) {
        is_set = is_set && (bitmaps[k].bits == nullptr || get(held[k], offsets[k] + i / repeat));
      }
      const int64_t at = shift + i;
      if (is_set) expected[static_cast<std::size_t>(at / 8)] |= static_cast<uint8_t>(1 << at % 8);
    }
    const auto target = make_memory(static_cast<int64_t>(expected.size()), stream);
    backend_->kernels(device_)->and_bits(device_, target.get(), shift, count, bitmaps[0],
                                         bitmaps[1], stream);
    const auto joined = read_on(stream, target.get(), expected.size());
    fake_->drain(0, stream);
    ASSERT_EQ(*joined, expected) << round;
  }
}

TEST_P(KernelsTest, FieldsHaveTheNullsOfTheirStruct) {
  const StreamHandle stream = take_stream();
  for (const char* format : {"i", "b", "g", "w:3"}) {
    SCOPED_TRACE(format);
    const OwnedSchema schema = testing::field(format);
    const Type type = parse_schema(*schema.get());
    for (unsigned seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(seed);
      Builder builder(seed);
      const Values rows = builder.make_values(type, builder.pick(0, 40));
      const auto count = static_cast<int64_t>(rows.size());
      const int64_t start = builder.pick(0, count);
      const DeviceArray array =
          make_structs(builder, format, rows).slice(start, builder.pick(0, count - start));
      const DeviceArray there = copy_array(array, device_);
      for (const DeviceArray& source : {there, upload(array)}) {
        for (const Read& read : kFieldReadings) {
          const OwnedTensor expected = read(array, {});
          const OwnedTensor tensor = read(source, order_of(stream));
          fake_->drain(0, stream);
          ASSERT_EQ(dims_of(tensor), dims_of(expected));
          ASSERT_EQ(bytes_of(tensor), bytes_of(expected));
        }
      }
    }
  }
}

TEST_P(KernelsTest, AFieldIsThereOnceItsStructIs) {
  Builder builder(1);
  DeviceArray source = upload(
      make_structs(builder, "c", testing::numbers({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})));
  source = source.slice((8 - source.offset() % 8) % 8, 3);  // whose bits begin a byte
  const Gated gated = take_gated_stream();
  fake_->enqueue_fill(0, gated.stream,
                      const_cast<uint8_t*>(source.validity()) + source.offset() / 8, 0x05, 1);
  events_.push_back(OwnedEvent::record(device_, gated.stream));
  OwnedDeviceArray exported = source.export_device_array();
  exported->sync_event = events_.back().handle().get();
  DeviceArray pending = DeviceArray::import(source.export_schema(), std::move(exported));
  DeviceArray field = pending.field(0);
  EXPECT_FALSE(field.is_ready()) << "the gate is closed, and no thread has waited";
  EXPECT_EQ(field.known_null_count(), -1);
  EXPECT_NE(field.sync_event(), pending.sync_event()) << "one event for data and bitmap";
  source = DeviceArray();
  pending = DeviceArray();
  const StreamHandle stream = take_stream();
  const OwnedTensor mask = to_mask(field, order_of(stream));
  field = DeviceArray();
  const auto read = read_on(stream, mask->data, 3);
  fake_->open_gate(gated.gate);
  fake_->drain(0, stream);
  EXPECT_EQ(*read, (Bytes{1, 0, 1}));
}

TEST_P(KernelsTest, AFieldThatNobodyReadsGoesOnceItIsMade) {
  Builder builder(1);
  const DeviceArray source = upload(make_structs(builder, "i", testing::numbers({1, 2, 3})));
  const Gated gated = take_gated_stream();
  events_.push_back(OwnedEvent::record(device_, gated.stream));
  OwnedDeviceArray exported = source.export_device_array();
  exported->sync_event = events_.back().handle().get();
  DeviceArray pending = DeviceArray::import(source.export_schema(), std::move(exported));
  pending.field(0);
  pending = DeviceArray();
  EXPECT_EQ(pending_releases(), 1) << "the kernel has yet to read it";
  fake_->open_gate(gated.gate);
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
}

TEST_P(KernelsTest, NobodyWaitsAndTheSourceStays) {
  DeviceArray source = make_rows("c", Values(12, testing::null()));
  source = upload(source.slice((8 - source.offset() % 8) % 8, 3));  // whose bits begin a byte
  const Gated gated = take_gated_stream();
  DeviceArray pending = hold_back(source, gated);
  const uint8_t* bytes = source.buffer_as<uint8_t>(1) + source.offset();
  const Bytes filled{bytes[0], 0, bytes[2]};
  const StreamHandle stream = take_stream();
  const OwnedTensor values = read_values(pending, Nulls::kFill, order_of(stream));
  const OwnedTensor mask = to_mask(pending, order_of(stream));
  EXPECT_FALSE(pending.is_ready()) << "the gate is closed";
  source = DeviceArray();
  pending = DeviceArray();
  const auto read = read_on(stream, values->data, 3);
  const auto read_mask = read_on(stream, mask->data, 3);
  fake_->open_gate(gated.gate);
  fake_->drain(0, stream);
  EXPECT_EQ(*read_mask, (Bytes{1, 0, 1}));
  EXPECT_EQ(*read, filled);
  EXPECT_TRUE((values.flags() & DLPACK_FLAG_BITMASK_IS_COPIED) != 0);
}

TEST_P(KernelsTest, WhatIsMadeStaysUntilItsConsumerIsDone) {
  const DeviceArray bools = upload(make_rows("b", testing::numbers({1, 0, 1})));
  const Gated gated = take_gated_stream();
  OwnedTensor tensor = read_values(bools, Nulls::kRaise, order_of(gated.stream));
  const auto read = read_on(gated.stream, tensor->data, 3);
  tensor.reset();
  EXPECT_GE(pending_releases(), 1);
  EXPECT_EQ(pending_release_bytes(), 3);
  fake_->open_gate(gated.gate);
  fake_->drain(0, gated.stream);
  EXPECT_EQ(*read, (Bytes{1, 0, 1}));
}

TEST_P(KernelsTest, AnArrayThatWaitsCountsItsBytes) {
  Builder builder(1);
  const Values texts{testing::text("abc"), testing::text("d")};
  const Values lists{testing::items(testing::numbers({1, 2})), testing::items({})};
  const OwnedSchema list = testing::field("+l", testing::field("i"));
  DeviceArray arrays[] = {
      upload(make_structs(builder, "i", testing::numbers({1, 2, 3}))),
      upload(make_rows("u", texts)),
      upload(builder.import(list, lists)),
  };
  for (DeviceArray& array : arrays) {
    const bool is_list = array.type().layout == Layout::kList;
    // Offsets are not read: all values of a list count, and no bytes of a string.
    const int64_t expected = array.nbytes() + (is_list ? array.child(0).nbytes() : 0);
    const Gated gated = take_gated_stream();
    array.record_stream(gated.stream);
    array = DeviceArray();
    EXPECT_EQ(pending_release_bytes(), expected);
    fake_->open_gate(gated.gate);
    EXPECT_TRUE(eventually([] { return pending_release_bytes() == 0; }));
  }
}

TEST_P(KernelsTest, AConsumerWithoutAStreamFindsItDone) {
  const DeviceArray bools = upload(make_rows("b", testing::numbers({1, 0, 1})));
  for (const Order& order :
       {Order{}, Order{Order::kNone}, Order{Order::kDefaultStream, GetParam().default_stream}}) {
    EXPECT_EQ(bytes_of(read_values(bools, Nulls::kRaise, order)), (Bytes{1, 0, 1}));
  }
}

TEST_P(KernelsTest, WhatNobodyCountedIsCountedOnTheDevice) {
  const DeviceArray array = upload(make_rows("i", {testing::number(1), testing::null()}));
  EXPECT_EQ(array.known_null_count(), -1);
  EXPECT_EQ(array.null_count(), 1);
  EXPECT_EQ(array.slice(0, 1).null_count(), 0);
  expect_error(ErrorKind::kBuffer, "has nulls", [&] { read_values(array, Nulls::kRaise, {}); });
  expect_error(ErrorKind::kBuffer, "needs a floating point type",
               [&] { read_values(array, Nulls::kNan, {}); });
  EXPECT_EQ(view_tensor(*read_values(array.slice(0, 1), Nulls::kNan, {})).size(), 1);
}

TEST_P(KernelsTest, StreamsOfOursAreNotRecorded) {
  Builder builder(1);
  const DeviceArray structs = upload(make_structs(builder, "i", testing::numbers({1, 2, 3})));
  const OwnedSchema list = testing::field("+l", testing::field("i"));
  const DeviceArray lists = upload(builder.import(list, {testing::items(testing::numbers({1}))}));
  for (const Nulls nulls : {Nulls::kKeep, Nulls::kFill}) {
    stack_fields(structs, nulls);
    pad_list(split_list(lists), nulls);
    concatenate({structs, structs});
  }
  EXPECT_TRUE(structs.storage()->recorded_streams.empty());
  EXPECT_TRUE(lists.storage()->recorded_streams.empty());
}

TEST_P(KernelsTest, ACaptureIsRefused) {
  const DeviceArray bools = upload(make_rows("b", testing::numbers({1})));
  const StreamHandle stream = take_stream();
  fake_->set_capturing(stream, true);
  expect_error(ErrorKind::kBuffer, "captured into a graph",
               [&] { read_values(bools, Nulls::kRaise, order_of(stream)); });
  fake_->set_capturing(stream, false);
}

TEST_P(CopyOnDeviceTest, IsMadeOnRequest) {
  const DeviceArray array = upload(make_rows("c", testing::numbers({1, 2, 3})));
  ToDlpackOptions options;
  options.copy = Copy::kAlways;
  const OwnedTensor tensor = to_dlpack(array, options);
  EXPECT_EQ(tensor->device.device_type, GetParam().device);
  EXPECT_NE(tensor->data, array.buffer_as<uint8_t>(1) + array.offset());
  EXPECT_EQ(bytes_of(tensor), (Bytes{1, 2, 3}));
  EXPECT_EQ(bytes_of(to_legacy_dlpack(array, options)), (Bytes{1, 2, 3}));
}

TEST_P(WithoutKernelsTest, SayWhatToDo) {
  const DeviceArray bools = upload(make_rows("b", testing::numbers({1})));
  expect_error(ErrorKind::kBuffer, "copy the data to the CPU", [&] { to_mask(bools); });
  EXPECT_EQ(backend_->kernels(device_), nullptr);
  EXPECT_EQ(find_kernels(device_), nullptr);
  expect_error(ErrorKind::kBuffer, "no kernels", [&] { require_kernels(device_); });
}

TEST_P(WithoutKernelsTest, FieldsGetTheNullsOfTheirStructByWayOfTheHost) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Builder builder(seed);
    Values rows(static_cast<std::size_t>(builder.pick(0, 70)));
    for (testing::Value& row : rows) {
      row = builder.pick(0, 2) == 0 ? testing::null() : testing::number(builder.pick(0, 9));
    }
    const DeviceArray structs = make_structs(builder, "i", rows);
    const int64_t start = builder.pick(0, structs.length());
    const DeviceArray here = structs.slice(start, builder.pick(0, structs.length() - start));
    // A window of the copy begins in the middle of a byte.
    const DeviceArray there = copy_array(structs, device_).slice(start, here.length()).field(0);
    EXPECT_EQ(there.device(), device_);
    const DeviceArray back = copy_array(there, Device{});
    EXPECT_EQ(testing::read_rows(back), testing::read_rows(here.field(0)));
    EXPECT_EQ(back.null_count(), here.field(0).null_count());
  }
}

TEST_P(WithoutKernelsTest, WorkGoesThroughTheHost) {
  int failed = 0;
  const auto fail_each = [&](const auto& work) {
    const auto try_work = [&] {
      try {
        work();
      } catch (const Error&) {
      }
    };
    for (int n = 1; fail_call(n, try_work); ++n) ++failed;
  };
  {
    const DeviceArray bools = upload(make_rows("b", testing::numbers({1, 0, 1})));
    const Values rows{testing::items(testing::numbers({1, 0})), testing::null(),
                      testing::items(testing::numbers({1}))};
    const OwnedSchema list = testing::field("+l", testing::field("i"));
    const DeviceArray lists = upload(Builder(1).import(list, rows));
    const auto read = [&] { return to_dlpack(bools, {}); };
    const auto join = [&] { return concatenate({lists, lists.slice(1, 2)}); };
    const auto count = [&] { return lists.slice(1, 2).null_count(); };
    EXPECT_EQ(bytes_of(read()), (Bytes{1, 0, 1}));
    EXPECT_EQ(join().device(), device_);
    EXPECT_EQ(testing::read_rows(copy_array(join(), Device{})),
              (Values{rows[0], rows[1], rows[2], rows[1], rows[2]}));
    EXPECT_EQ(count(), 1);
    fail_each(read);
    fail_each(join);
    fail_each(count);
  }
  EXPECT_GE(failed, 20);
  accept_abandoned();
  objects_ = live_objects();
}

TEST_P(KernelsTest, EveryCallFailsInTurn) {
  const StreamHandle stream = take_stream();
  int failed = 0;
  for (const char* format : {"i", "b"}) {
    const DeviceArray array = upload(make_rows(format, {testing::number(1), testing::null()}));
    for (const Read& read : kReadings) {
      for (int n = 1; fail_reading(array, read, stream, n); ++n) ++failed;
    }
    Builder builder(1);
    const DeviceArray structs = upload(make_structs(builder, format, testing::numbers({1, 0, 1})));
    for (const Read& read : kFieldReadings) {
      for (int n = 1; fail_reading(structs, read, stream, n); ++n) ++failed;
    }
    const Values rows{testing::items(testing::numbers({1, 0})), testing::null(),
                      testing::items(testing::numbers({1}))};
    const OwnedSchema list = testing::field("+l", testing::field(format));
    const DeviceArray lists = upload(builder.import(list, rows));
    for (const Read& read : kListReadings) {
      for (int n = 1; fail_reading(lists, read, stream, n); ++n) ++failed;
    }
  }
  EXPECT_GE(failed, 60);
  accept_abandoned();
  objects_ = live_objects();
}

}  // namespace
}  // namespace arrowdl
