// Makes arrays without rows, arrays of one buffer, and structs of their fields.
#include <cstring>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// A zero, for the one offset of an array without rows. NULL on other devices, where the host
/// cannot write it: without rows the format allows that.
Buffer make_empty_buffer(const Device& device) {
  if (device.type != kDLCPU) return Buffer();
  constexpr int64_t kSize = sizeof(int64_t);
  uint8_t* bytes = nullptr;
  Buffer buffer = Buffer::allocate(kSize, &bytes);
  std::memset(bytes, 0, kSize);
  return buffer;
}

OwnedArray make_empty_array(const Type& type, const Device& device) {
  const LayoutRow& row = layout_row(type.layout);
  ArrayParts parts;
  for (int64_t i = 0; i < row.buffer_count; ++i) {
    const bool is_validity = i == 0 && row.has_validity();
    parts.buffers.push_back(is_validity ? Buffer() : make_empty_buffer(device));
  }
  for (const Type& child : type.children) {
    parts.children.push_back(make_empty_array(child, device));
  }
  if (type.dictionary != nullptr) parts.dictionary = make_empty_array(*type.dictionary, device);
  return make_array(std::move(parts));
}

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

DeviceArray make_empty(std::shared_ptr<const ParsedSchema> schema, Device device) {
  OwnedArray array = make_empty_array(schema->type, device);
  return DeviceArray::import(std::move(schema), std::move(array), device);
}

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

DeviceArray make_struct(const std::vector<std::string>& names,
                        const std::vector<DeviceArray>& fields) {
  std::vector<OwnedSchema> schemas;
  std::vector<OwnedArray> arrays;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (names[i].find('\0') != std::string::npos) {
      raise_value_error("the name of field ", i, " has a NUL character, where Arrow's names end");
    }
    if (fields[i].length() != fields[0].length()) {
      raise_value_error("field \"", names[i], "\" has ", fields[i].length(), " rows, \"", names[0],
                        "\" has ", fields[0].length());
    }
    if (fields[i].device() != fields[0].device()) {
      raise_value_error("field \"", names[i], "\" is on ", to_string(fields[i].device()), ", \"",
                        names[0], "\" on ", to_string(fields[0].device()), ": move one of them");
    }
    schemas.push_back(rename_schema(fields[i].export_schema(), names[i].c_str()));
    arrays.push_back(share_array(fields[i]));
  }
  const int64_t length = fields.empty() ? 0 : fields[0].length();
  const Device device = fields.empty() ? Device{} : fields[0].device();
  std::vector<EventHandle> events;
  events.reserve(fields.size());
  for (const DeviceArray& field : fields) events.push_back(field.sync_event());
  ArrayParts parts;
  parts.length = length;
  parts.buffers.push_back(Buffer());
  parts.children = std::move(arrays);
  return DeviceArray::import(make_nested_schema("+s", std::move(schemas)),
                             make_array(std::move(parts)), device,
                             OwnedEvent::join(device, std::move(events)));
}

DeviceArray DeviceArray::derive(OwnedSchema schema, OwnedArray array) const {
  return derive(share_schema(std::move(schema)), std::move(array));
}

DeviceArray DeviceArray::derive(std::shared_ptr<const ParsedSchema> schema,
                                OwnedArray array) const {
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
