// Tests imported and exported streams.
#include "arrowdl/stream.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "arrowdl/concatenate.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

/// A producer that returns `arrays`, then fails with `error` if that is not 0.
template <typename Array>
struct Producer {
  OwnedSchema schema;
  std::vector<Array> arrays;
  int error = 0;
  int schema_error = 0;
  const char* message = "disk on fire";
  std::size_t position = 0;
};

template <typename Array>
Producer<Array>& producer_of(void* private_data) {
  return *static_cast<Producer<Array>*>(private_data);
}

/// The callbacks that both kinds of stream have. The producer outlives the stream.
template <typename Array, typename Stream>
void fill_stream(Producer<Array>* producer, Stream* stream) {
  stream->private_data = producer;
  stream->get_schema = [](Stream* self, ArrowSchema* out) -> int {
    auto& from = producer_of<Array>(self->private_data);
    if (from.schema_error != 0) return from.schema_error;
    return ArrowSchemaDeepCopy(from.schema.get(), out);
  };
  stream->get_next = [](Stream* self, auto* out) -> int {
    auto& from = producer_of<Array>(self->private_data);
    if (from.position < from.arrays.size()) {
      from.arrays[from.position++].move(out);
      return 0;
    }
    *out = {};
    return from.error;
  };
  stream->get_last_error = [](Stream* self) {
    return producer_of<Array>(self->private_data).message;
  };
  stream->release = [](Stream* self) { self->release = nullptr; };
}

OwnedArrayStream open(Producer<OwnedArray>* producer) {
  OwnedArrayStream stream;
  fill_stream(producer, stream.get());
  return stream;
}

OwnedDeviceArrayStream open(Producer<OwnedDeviceArray>* producer,
                            ArrowDeviceType device = ARROW_DEVICE_CPU) {
  OwnedDeviceArrayStream stream;
  stream->device_type = device;
  fill_stream(producer, stream.get());
  return stream;
}

OwnedArray make_chunk(const OwnedSchema& schema, const Values& rows) {
  return Builder(1).import(schema, rows).export_array();
}

Producer<OwnedArray> produce(OwnedSchema schema, const std::vector<Values>& chunks) {
  Producer<OwnedArray> producer;
  for (const Values& rows : chunks) producer.arrays.push_back(make_chunk(schema, rows));
  producer.schema = std::move(schema);
  return producer;
}

template <typename Stream>
Chunks read_all(Stream stream) {
  return read_stream(*import_stream(std::move(stream)));
}

TEST(ReadStream, ChunksWithTheirSchema) {
  Producer<OwnedArray> producer = produce(field("i"), {numbers({1, 2}), {}, numbers({3})});
  const Chunks chunks = read_all(open(&producer));
  ASSERT_EQ(chunks.arrays.size(), 3U);
  EXPECT_STREQ(chunks.schema->schema->format, "i");
  EXPECT_EQ(read_rows(chunks.arrays[0]), numbers({1, 2}));
  EXPECT_EQ(chunks.arrays[1].length(), 0);
}

TEST(ReadStream, GatherManyOneAndNone) {
  Producer<OwnedArray> many = produce(field("i"), {numbers({1, 2}), numbers({3})});
  EXPECT_EQ(read_rows(gather(read_all(open(&many)))), numbers({1, 2, 3}));

  Producer<OwnedArray> one = produce(field("i"), {numbers({1, 2})});
  const void* data = one.arrays[0]->buffers[1];
  EXPECT_EQ(gather(read_all(open(&one))).buffer(1), data);

  Producer<OwnedArray> none = produce(field("+s", field("u"), field("i")), {});
  const DeviceArray empty = gather(read_all(open(&none)));
  EXPECT_EQ(empty.length(), 0);
  EXPECT_EQ(empty.child(1).length(), 0);
}

TEST(ReadStream, FailuresOfTheProducer) {
  const int64_t objects = live_objects();
  Producer<OwnedArray> failing = produce(field("i"), {numbers({1})});
  failing.error = EIO;
  expect_error(ErrorKind::kRuntime, "disk on fire", [&] { read_all(open(&failing)); });
  failing.schema_error = EINVAL;
  failing.message = nullptr;
  expect_error(ErrorKind::kRuntime, "Invalid argument", [&] { read_all(open(&failing)); });
  failing.schema_error = ENOSYS;
  expect_error(ErrorKind::kNotImplemented, "not implemented", [&] { read_all(open(&failing)); });
  failing.arrays.clear();
  EXPECT_EQ(live_objects(), objects);
}

TEST(ExportStream, ReportsWhatTheProducerReported) {
  Producer<OwnedArray> failing = produce(field("i"), {});
  for (const int code : {ENOSYS, ENOMEM, EIO, EINVAL, 12345}) {
    for (const char* message : std::initializer_list<const char*>{"disk on fire", "", nullptr}) {
      failing.error = code;
      failing.message = message;
      OwnedArrayStream once = export_stream(import_stream(open(&failing)));
      const OwnedArrayStream twice = export_stream(import_stream(std::move(once)));
      OwnedArray array;
      for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(twice->get_next(const_cast<ArrowArrayStream*>(twice.get()), array.get()), code);
        const char* said = twice->get_last_error(const_cast<ArrowArrayStream*>(twice.get()));
        const bool is_empty = message == nullptr || *message == '\0';
        EXPECT_STREQ(said, is_empty ? nullptr : message);
      }
    }
  }
}

TEST(ReadStream, MalformedStreams) {
  expect_error(ErrorKind::kValue, "released already", [] { read_all(OwnedArrayStream()); });
  Producer<OwnedArray> producer = produce(field("i"), {});
  OwnedArrayStream stream = open(&producer);
  stream->get_next = nullptr;
  expect_error(ErrorKind::kValue, "get_next is NULL", [&] { read_all(std::move(stream)); });

  Producer<OwnedArray> bad_schema = produce(field("i"), {});
  ArrowSchemaSetFormat(bad_schema.schema.get(), "?");
  expect_error(ErrorKind::kValue, "schema", [&] { read_all(open(&bad_schema)); });

  Producer<OwnedArray> bad_array = produce(field("i"), {numbers({1})});
  bad_array.arrays[0]->length = -1;
  expect_error(ErrorKind::kValue, "length -1", [&] { read_all(open(&bad_array)); });
}

TEST(ReadStream, DeviceStreams) {
  Producer<OwnedDeviceArray> producer;
  producer.schema = field("i");
  for (const int64_t n : {1, 2}) {
    producer.arrays.push_back(
        Builder(1).import(producer.schema, numbers({n})).export_device_array());
  }
  EXPECT_EQ(read_rows(gather(read_all(open(&producer)))), numbers({1, 2}));

  Producer<OwnedDeviceArray> lying;
  lying.schema = field("i");
  lying.arrays.push_back(Builder(1).import(lying.schema, numbers({1})).export_device_array());
  expect_error(ErrorKind::kValue, "stream of device type 2",
               [&] { read_all(open(&lying, ARROW_DEVICE_CUDA)); });
}

class MakeEmptyTest : public ::testing::TestWithParam<NamedSchema> {};

TEST_P(MakeEmptyTest, OnAnyDevice) {
  const OwnedSchema schema = GetParam().make();
  for (const Device device : {Device{}, Device{kDLCUDA, 1}}) {
    const DeviceArray empty = make_empty(share_schema(copy(schema)), device);
    EXPECT_EQ(empty.length(), 0);
    EXPECT_EQ(empty.null_count(), 0);
    EXPECT_EQ(empty.device(), device);
  }
  EXPECT_EQ(
      concatenate({make_empty(share_schema(copy(schema))), make_empty(share_schema(copy(schema)))})
          .length(),
      0);
}

INSTANTIATE_TEST_SUITE_P(EveryType, MakeEmptyTest, ::testing::ValuesIn(every_type()),
                         [](const auto& info) { return info.param.name; });

TEST(ExportStream, GivesChunksInOrderAndKeepsThem) {
  const int64_t before = live_objects();
  {
    Producer<OwnedArray> producer;
    producer.schema = field("l");
    producer.arrays.push_back(make_chunk(producer.schema, numbers({1, 2})));
    producer.arrays.push_back(make_chunk(producer.schema, numbers({3})));
    OwnedArrayStream written = export_stream(import_stream(open(&producer)));
    OwnedDeviceArrayStream device = export_device_stream(import_stream(std::move(written)));
    EXPECT_EQ(device->device_type, ARROW_DEVICE_CPU);
    const Chunks chunks = read_all(std::move(device));
    ASSERT_EQ(chunks.arrays.size(), 2U);
    EXPECT_EQ(read_rows(chunks.arrays[0]), numbers({1, 2}));
    EXPECT_EQ(read_rows(chunks.arrays[1]), numbers({3}));
  }
  EXPECT_EQ(live_objects(), before);
}

TEST(MakeStream, RefusesChunksOfOtherTypesAndDevices) {
  const auto plain = [](Device device) {
    return DeviceArray::make_primitive(*find_dtype("int64"), 1, exact("12345678"), device);
  };
  const DeviceArray cuda = plain({kDLCUDA, 0});
  expect_error(ErrorKind::kValue, "a stream has one schema",
               [&] { make_stream({plain({}), Builder(1).import(field("i"), numbers({1}))}); });
  expect_error(ErrorKind::kValue, "one device type", [&] { make_stream({plain({}), cuda}); });
  expect_error(ErrorKind::kBuffer, "cuda:0", [&] { export_stream(make_stream({cuda})); });
  EXPECT_EQ(export_device_stream(make_stream({cuda}))->device_type, ARROW_DEVICE_CUDA);
}

}  // namespace
}  // namespace arrowdl::testing
