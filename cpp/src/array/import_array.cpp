// Takes over C structs as a DeviceArray, and checks them.
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

void check_event(const ArrowDeviceArray& array, const Device& device) {
  if (array.sync_event != nullptr && device_event_type(device.type) == nullptr) {
    raise_value_error("an Arrow array on ", to_string(device),
                      " carries a sync_event, and Arrow defines none for that device");
  }
}

}  // namespace

DeviceArray DeviceArray::import(OwnedSchema schema, OwnedDeviceArray array, Releaser releaser) {
  auto storage = std::make_shared<Storage>(releaser);
  storage->array = std::move(array);
  storage->schema = share_schema(std::move(schema), releaser);
  return import_storage(std::move(storage));
}

DeviceArray DeviceArray::import(std::shared_ptr<const ParsedSchema> schema, OwnedDeviceArray array,
                                Releaser releaser) {
  auto storage = std::make_shared<Storage>(releaser);
  storage->array = std::move(array);
  storage->schema = std::move(schema);
  return import_storage(std::move(storage));
}

DeviceArray DeviceArray::import_storage(std::shared_ptr<Storage> storage) {
  const ArrowDeviceArray& root = *storage->array.get();
  const Type* type = &storage->schema->type;
  storage->device = from_arrow_device(root.device_type, root.device_id);
  check_event(root, storage->device);
  const bool is_ready = storage->device.type == kDLCPU && root.sync_event == nullptr;
  validate_array(*type, root.array, is_ready);
  return DeviceArray(std::move(storage), type, &root.array, root.array.offset, root.array.length);
}

DeviceArray DeviceArray::import(OwnedSchema schema, OwnedArray array, Device device,
                                OwnedEvent event) {
  auto storage = std::make_shared<Storage>();
  ArrowDeviceArray& root = *storage->array.get();
  array.move(&root.array);
  root.device_type = device.type;
  root.device_id = to_arrow_device_id(device);
  root.sync_event = event.handle().get();
  storage->event = std::move(event);
  storage->schema = share_schema(std::move(schema));
  return import_storage(std::move(storage));
}

ARROWDL_END_NAMESPACE
