#include <cstring>

#include "arrowdl/convert.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl {
namespace {

template <typename Stream>
[[noreturn]] void raise_stream_error(Stream* stream, const char* verb, int code) {
  const char* message =
      stream->get_last_error == nullptr ? nullptr : stream->get_last_error(stream);
  throw Error(ErrorKind::kRuntime,
              concat("the Arrow stream's producer failed to ", verb, ": ",
                     message == nullptr ? std::strerror(code) : message, " (errno ", code, ")"));
}

template <typename Stream>
void check_stream(const Stream* stream) {
  if (stream->release == nullptr) {
    raise_value_error("the Arrow stream has been released already: a stream can be read once");
  }
  if (stream->get_schema == nullptr || stream->get_next == nullptr) {
    raise_value_error("malformed Arrow stream: get_schema or get_next is NULL");
  }
}

template <typename Stream>
OwnedSchema read_schema(Stream* stream) {
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

template <typename Stream>
Chunks read_chunks(Stream* stream, Releaser releaser) {
  check_stream(stream);
  Chunks chunks;
  chunks.schema = share_schema(read_schema(stream), releaser);
  for (;;) {
    OwnedDeviceArray chunk = read_chunk(stream);
    if (chunk->array.release == nullptr) return chunks;
    chunks.arrays.push_back(DeviceArray::import(chunks.schema, std::move(chunk), releaser));
  }
}

/// Zeros, which a one-offset buffer of an empty array holds. The host may not write to other
/// devices; there the buffers stay NULL, as they may where there are no rows.
Buffer make_empty_buffer(const Device& device) {
  if (device.type != kDLCPU) return Buffer();
  constexpr int64_t kSize = sizeof(int64_t);
  uint8_t* bytes = nullptr;
  Buffer buffer = Buffer::allocate(kSize, &bytes);
  std::memset(bytes, 0, kSize);
  return buffer;
}

OwnedArray make_empty_array(const Type& type, const Device& device) {
  constexpr int64_t kViewBuffers = 3;
  const int64_t buffer_count = type.buffer_count() < 0 ? kViewBuffers : type.buffer_count();
  ArrayParts parts;
  for (int64_t i = 0; i < buffer_count; ++i) {
    const bool is_validity = i == 0 && type.has_validity();
    parts.buffers.push_back(is_validity ? Buffer() : make_empty_buffer(device));
  }
  for (const Type& child : type.children) {
    parts.children.push_back(make_empty_array(child, device));
  }
  if (type.dictionary != nullptr) parts.dictionary = make_empty_array(*type.dictionary, device);
  return make_array(std::move(parts));
}

}  // namespace

Chunks read_stream(OwnedArrayStream stream, Releaser releaser) {
  return read_chunks(stream.get(), releaser);
}

Chunks read_stream(OwnedDeviceArrayStream stream, Releaser releaser) {
  return read_chunks(stream.get(), releaser);
}

DeviceArray gather(Chunks chunks) {
  if (chunks.arrays.empty()) return make_empty(std::move(chunks.schema));
  return concatenate(chunks.arrays);
}

DeviceArray make_empty(std::shared_ptr<const ParsedSchema> schema, Device device) {
  OwnedDeviceArray array;
  make_empty_array(schema->type, device).move(&array->array);
  array->device_type = device.type;
  array->device_id = to_arrow_device_id(device);
  return DeviceArray::import(std::move(schema), std::move(array));
}

}  // namespace arrowdl
