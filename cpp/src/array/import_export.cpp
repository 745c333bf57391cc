// Takes over C structs as a DeviceArray, and exports it as structs that keep its memory.
#include "array/export_tree.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/order.hpp"

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
  return import(share_schema(std::move(schema)), std::move(array), device, std::move(event));
}

DeviceArray DeviceArray::import(std::shared_ptr<const ParsedSchema> schema, OwnedArray array,
                                Device device, OwnedEvent event) {
  auto storage = std::make_shared<Storage>();
  ArrowDeviceArray& root = *storage->array.get();
  array.move(&root.array);
  root.device_type = device.type;
  root.device_id = to_arrow_device_id(device);
  root.sync_event = event.handle().get();
  storage->event = std::move(event);
  storage->schema = std::move(schema);
  return import_storage(std::move(storage));
}

OwnedSchema DeviceArray::export_schema() const {
  OwnedSchema schema;
  share_tree(*type_->schema, std::shared_ptr<const void>(storage_->schema), schema.get());
  return schema;
}

OwnedArray share_array(const DeviceArray& array) {
  OwnedArray shared;
  share_tree(*array.node_, std::shared_ptr<const void>(array.storage_), shared.get());
  const bool whole = array.offset_ == array.node_->offset && array.length_ == array.node_->length;
  shared->offset = array.offset_;
  shared->length = array.length_;
  if (array.type_->layout == Layout::kNull) {
    shared->null_count = array.length_;
  } else if (!whole) {
    shared->null_count = array.validity() == nullptr ? 0 : -1;
  }
  if (array.type_->layout == Layout::kStruct && array.is_known_to_be_valid()) {
    move_offset_to_fields(*array.type_, shared.get());
  }
  if (is_host_readable(array.device())) tidy_for_export(*array.type_, shared.get());
  return shared;
}

OwnedArray DeviceArray::export_array() const {
  if (!is_host_readable(device())) {
    raise_buffer_error("an array on ", to_string(device()),
                       " cannot be exported as host memory: use the device interface "
                       "(__arrow_c_device_array__) or copy it to the CPU first");
  }
  synchronize();
  OwnedArray shared = share_array(*this);
  move_offsets_down(*type_, shared.get());
  return shared;
}

OwnedDeviceArray DeviceArray::export_device_array() const {
  record_default_stream(*this);
  OwnedDeviceArray exported;
  OwnedArray shared = share_array(*this);
  if (device().type == kDLCPU) move_offsets_down(*type_, shared.get());  // memory is ready
  shared.move(&exported->array);
  exported->device_type = storage_->array->device_type;
  exported->device_id = to_arrow_device_id(device());
  exported->sync_event = sync_event().get();
  return exported;
}

ARROWDL_END_NAMESPACE
