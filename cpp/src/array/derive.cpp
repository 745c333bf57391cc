// Makes arrays of another type over the memory of one.
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

DeviceArray DeviceArray::derive(OwnedSchema schema, OwnedArray array) const {
  OwnedDeviceArray derived;
  array.move(&derived->array);
  derived->device_type = storage_->array->device_type;
  derived->device_id = storage_->array->device_id;
  derived->sync_event = sync_event().get();
  return import(std::move(schema), std::move(derived));
}

DeviceArray DeviceArray::indices() const {
  dictionary();  // raises when there is none
  OwnedSchema schema = export_schema();
  schema->dictionary->release(schema->dictionary);
  schema->dictionary = nullptr;
  schema->flags &= ~int64_t{ARROW_FLAG_DICTIONARY_ORDERED};
  OwnedArray array = share_array(*this);
  array->dictionary->release(array->dictionary);
  array->dictionary = nullptr;
  return derive(std::move(schema), std::move(array));
}

DeviceArray DeviceArray::validity_array() const {
  ArrayParts parts;
  parts.length = length_;
  parts.offset = offset_;
  parts.buffers.push_back(Buffer());
  parts.buffers.push_back(Buffer(storage_, validity(), 0));
  return derive(make_nested_schema("b", {}), make_array(std::move(parts)));
}

DeviceArray DeviceArray::buffer_array(int64_t i, const Dtype& dtype, int64_t count) const {
  ArrayParts parts;
  parts.length = count;
  parts.buffers = {Buffer(), Buffer(storage_, buffer(i), count * dtype.itemsize())};
  return derive(make_schema(dtype), make_array(std::move(parts)));
}

ARROWDL_END_NAMESPACE
