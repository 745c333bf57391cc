#include <vector>

#include "arrowdl/device_array.hpp"

namespace arrowdl {
namespace {

using SharedSchemas = std::vector<std::shared_ptr<const ParsedSchema>>;

SharedSchemas* make_plain_schemas() {
  auto* schemas = new SharedSchemas;
  for (const Dtype& dtype : Dtypes()) schemas->push_back(share_schema(make_schema(dtype)));
  return schemas;
}

/// Of one element of `dtype`, with no owner to count: it is never freed, since an array may outlive
/// the static objects of the process.
std::shared_ptr<const ParsedSchema> plain_schema(const Dtype& dtype) {
  static const SharedSchemas& schemas = *make_plain_schemas();
  const auto& schema = schemas[static_cast<std::size_t>(&dtype - Dtypes().begin())];
  return std::shared_ptr<const ParsedSchema>(std::shared_ptr<void>(), schema.get());
}

/// The array's one node, its buffers and their owner in one allocation.
struct PlainStorage : Storage {
  explicit PlainStorage(Buffer from) : data(std::move(from)) {}
  ~PlainStorage() {
    if (!recorded_streams.empty()) recorded_streams.release(data.owner(), data.size());
  }

  Buffer data;
  const void* buffers[2] = {nullptr, data.data()};
};

}  // namespace

DeviceArray DeviceArray::make_primitive(const Dtype& dtype, int64_t length, Buffer data,
                                        Device device, OwnedEvent event) {
  auto storage = std::make_shared<PlainStorage>(std::move(data));
  storage->schema = plain_schema(dtype);
  storage->device = device;
  ArrowDeviceArray& root = *storage->array.get();
  root.device_type = device.type;
  root.device_id = to_arrow_device_id(device);
  root.sync_event = event.get().get();
  storage->event = std::move(event);
  root.array = ArrowArray{};  // its release stays NULL: `data` is what holds the memory
  root.array.length = length;
  root.array.n_buffers = 2;
  root.array.buffers = storage->buffers;
  const ArrowArray* node = &root.array;
  const Type* type = &storage->schema->type;
  return DeviceArray(std::move(storage), type, node, 0, length);
}

}  // namespace arrowdl
