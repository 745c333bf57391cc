// Exports an array as C structs that keep its memory alive.
#include "array/export_tree.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/order.hpp"

ARROWDL_BEGIN_NAMESPACE

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
  return share_array(*this);
}

OwnedDeviceArray DeviceArray::export_device_array() const {
  record_default_stream(*this);
  OwnedDeviceArray exported;
  share_array(*this).move(&exported->array);
  exported->device_type = storage_->array->device_type;
  exported->device_id = to_arrow_device_id(device());
  exported->sync_event = sync_event().get();
  return exported;
}

ARROWDL_END_NAMESPACE
