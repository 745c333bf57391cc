// Makes arrays of one buffer of elements in one allocation.
#include <vector>

#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using SharedSchemas = std::vector<std::shared_ptr<const ParsedSchema>>;

SharedSchemas* make_primitive_schemas() {
  auto* schemas = new SharedSchemas;
  for (const Dtype& dtype : Dtypes()) schemas->push_back(share_schema(make_schema(dtype)));
  return schemas;
}

/// The schema of `dtype`. Never freed, since an array may outlive the static objects of the
/// process; without a reference count.
std::shared_ptr<const ParsedSchema> primitive_schema(const Dtype& dtype) {
  static const SharedSchemas& schemas = *make_primitive_schemas();
  const auto& schema = schemas[static_cast<std::size_t>(&dtype - Dtypes().begin())];
  return std::shared_ptr<const ParsedSchema>(std::shared_ptr<void>(), schema.get());
}

/// The array's one node, its buffers and their owner in one allocation.
struct PrimitiveStorage : Storage {
  explicit PrimitiveStorage(Buffer from) : data(std::move(from)) {}
  ~PrimitiveStorage() {
    if (!recorded_streams.empty()) recorded_streams.release(data.owner(), data.size());
  }

  Buffer data;
  const void* buffers[2] = {nullptr, data.data()};
};

}  // namespace

DeviceArray DeviceArray::make_primitive(const Dtype& dtype, int64_t length, Buffer data,
                                        Device device, OwnedEvent event) {
  auto storage = std::make_shared<PrimitiveStorage>(std::move(data));
  storage->schema = primitive_schema(dtype);
  storage->device = device;
  ArrowDeviceArray& root = *storage->array.get();
  root.device_type = device.type;
  root.device_id = to_arrow_device_id(device);
  root.sync_event = event.handle().get();
  storage->event = std::move(event);
  root.array = ArrowArray{};  // its release stays NULL: `data` is what holds the memory
  root.array.length = length;
  root.array.n_buffers = 2;
  root.array.buffers = storage->buffers;
  const ArrowArray* node = &root.array;
  const Type* type = &storage->schema->type;
  return DeviceArray(std::move(storage), type, node, 0, length);
}

ARROWDL_END_NAMESPACE
