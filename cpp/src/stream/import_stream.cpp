// Reads a producer's C stream.
#include <exception>
#include <type_traits>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "stream/stream_errors.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename CStream>
[[noreturn]] void raise_stream_error(CStream* stream, const char* verb, int code) {
  const char* message =
      stream->get_last_error == nullptr ? nullptr : stream->get_last_error(stream);
  raise_producer_error(verb, code, message == nullptr ? "" : message);
}

template <typename CStream>
void check_stream(const CStream* stream) {
  if (stream->release == nullptr) {
    raise_value_error("the Arrow stream has been released already: a stream can be read once");
  }
  if (stream->get_schema == nullptr || stream->get_next == nullptr) {
    raise_value_error("malformed Arrow stream: get_schema or get_next is NULL");
  }
}

template <typename CStream>
OwnedSchema read_schema(CStream* stream) {
  check_stream(stream);
  OwnedSchema schema;
  const int code = stream->get_schema(stream, schema.get());
  if (code != 0) raise_stream_error(stream, "give its schema", code);
  if (schema->release == nullptr) {
    raise_value_error("malformed Arrow stream: get_schema succeeded with a released schema");
  }
  return schema;
}

/// The next chunk; a released one at the end.
OwnedDeviceArray read_chunk(ArrowDeviceArrayStream* stream) {
  OwnedDeviceArray chunk;
  const int code = stream->get_next(stream, chunk.get());
  if (code != 0) raise_stream_error(stream, "give its next array", code);
  if (chunk->array.release != nullptr && chunk->device_type != stream->device_type) {
    raise_value_error("malformed Arrow stream: an array on device type ", chunk->device_type,
                      " in a stream of device type ", stream->device_type);
  }
  return chunk;
}

OwnedDeviceArray read_chunk(ArrowArrayStream* stream) {
  OwnedArray array;
  const int code = stream->get_next(stream, array.get());
  if (code != 0) raise_stream_error(stream, "give its next array", code);
  OwnedDeviceArray chunk;
  chunk->device_id = -1;
  chunk->device_type = ARROW_DEVICE_CPU;
  array.move(&chunk->array);
  return chunk;
}

int32_t find_device_type(const ArrowArrayStream*) noexcept { return kDLCPU; }
int32_t find_device_type(const ArrowDeviceArrayStream* stream) {
  return from_arrow_device(stream->device_type, 0).type;
}

/// Owns a producer's stream, and releases it with the releaser of the bindings.
template <typename Owned>
class Producer {
 public:
  Producer(Owned stream, StreamReleaser releaser) noexcept
      : stream_(std::move(stream)), releaser_(releaser) {}
  Producer(Producer&& other) noexcept = default;
  Producer& operator=(Producer&&) = delete;
  ~Producer() { close(); }

  bool is_open() const noexcept { return stream_->release != nullptr; }
  auto* get() noexcept { return stream_.get(); }
  void close() noexcept {
    if (!is_open()) return;
    if (releaser_ == nullptr) {
      stream_.reset();
    } else if constexpr (std::is_same_v<Owned, OwnedArrayStream>) {
      releaser_(&stream_, nullptr);
    } else {
      releaser_(nullptr, &stream_);
    }
  }

 private:
  Owned stream_;
  StreamReleaser releaser_;
};

template <typename Owned>
class ImportedStream final : public ArrayStream {
 public:
  ImportedStream(std::shared_ptr<const ParsedSchema> schema, int32_t device_type,
                 Producer<Owned> producer, Releaser releaser)
      : ArrayStream(std::move(schema), device_type),
        producer_(std::move(producer)),
        releaser_(releaser) {}

  DeviceArray next(int64_t) override {
    if (failure_) std::rethrow_exception(failure_);
    if (!producer_.is_open()) return {};
    try {
      OwnedDeviceArray chunk = read_chunk(producer_.get());
      if (chunk->array.release != nullptr) {
        return DeviceArray::import(schema(), std::move(chunk), releaser_);
      }
    } catch (const Error&) {
      failure_ = std::current_exception();
      producer_.close();
      throw;
    }
    producer_.close();  // releases the source at its end, rather than in the destructor
    return {};
  }

 private:
  Producer<Owned> producer_;
  Releaser releaser_;
  std::exception_ptr failure_;
};

template <typename Owned>
OwnedStream import_any(Owned stream, const StreamReleasers& releasers) {
  Producer<Owned> producer(std::move(stream), releasers.stream);
  auto schema = share_schema(read_schema(producer.get()), releasers.contents);
  const int32_t device_type = find_device_type(producer.get());
  return std::make_unique<ImportedStream<Owned>>(std::move(schema), device_type,
                                                 std::move(producer), releasers.contents);
}

}  // namespace

OwnedStream import_stream(OwnedArrayStream stream, const StreamReleasers& releasers) {
  return import_any(std::move(stream), releasers);
}

OwnedStream import_stream(OwnedDeviceArrayStream stream, const StreamReleasers& releasers) {
  return import_any(std::move(stream), releasers);
}

ARROWDL_END_NAMESPACE
