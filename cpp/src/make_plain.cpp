#include <vector>

#include "arrowdl/device_array.hpp"

namespace arrowdl {
namespace {

struct PlainType {
  OwnedSchema schema;
  Type type;
};

std::vector<PlainType>* make_plain_types() {
  auto* types =
      new std::vector<PlainType>(static_cast<std::size_t>(Dtypes().end() - Dtypes().begin()));
  for (const Dtype& dtype : Dtypes()) {
    PlainType& plain = (*types)[static_cast<std::size_t>(&dtype - Dtypes().begin())];
    plain.schema = make_schema(dtype);
    plain.type = parse_schema(*plain.schema.get());
  }
  return types;
}

const Type& plain_type(const Dtype& dtype) {
  // Never freed: an array may outlive the static objects of the process.
  static const std::vector<PlainType>& types = *make_plain_types();
  return types[static_cast<std::size_t>(&dtype - Dtypes().begin())].type;
}

/// The array's one node, its buffers and their owner in one allocation.
struct PlainStorage : Storage {
  explicit PlainStorage(Buffer from) : data(std::move(from)) {}
  ~PlainStorage() {
    if (!used_streams.empty()) used_streams.release(data.owner());
  }

  Buffer data;
  const void* buffers[2] = {nullptr, data.data()};
};

}  // namespace

DeviceArray DeviceArray::make_plain(const Dtype& dtype, int64_t length, Buffer data, Device device,
                                    OwnedEvent event) {
  const Type& type = plain_type(dtype);
  auto storage = std::make_shared<PlainStorage>(std::move(data));
  storage->device = device;
  ArrowDeviceArray& root = *storage->array.get();
  root.device_type = device.type;
  root.device_id = to_arrow_device_id(device);
  root.sync_event = event.get();
  storage->event = std::move(event);
  root.array = ArrowArray{};  // its release stays NULL: `data` is what holds the memory
  root.array.length = length;
  root.array.n_buffers = 2;
  root.array.buffers = storage->buffers;
  const ArrowArray* node = &root.array;
  return DeviceArray(std::move(storage), &type, node, 0, length);
}

}  // namespace arrowdl
